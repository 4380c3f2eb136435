"""Templates: who gets what they hold, and who beats whom."""

import pytest

from dagkit.conf.apply.settings import Settings
from dagkit.ground.patterns import HELP
from tests.conf.samples import Feed, Reader, config


def configured(values, name="operator1", component=None):
    settings = Settings(config(values), "app1")
    return settings.configure(name, component or Reader()).component, settings


def test_operator_configuration_lookup():
    """testOperatorConfigurationLookup: a template by name beats one by class; keys of the operator add to both."""
    values = {
        "dt.template.byId.matchIdRegExp": ".*operator1.*",
        "dt.template.byId.text": "from the name",
        "dt.template.byId.scanner.filePatternRegularExp": "nested",
        "dt.template.byClass.matchClassNameRegExp": ".*Reader",
        "dt.template.byClass.text": "from the class",
        "dt.operator.operator3.blockSize": "3",
    }
    one, _ = configured(values)
    assert (one.text, one.scanner.file_pattern_regular_exp) == ("from the name", "nested")
    two, _ = configured(values, "operator2")
    assert (two.text, two.scanner.file_pattern_regular_exp) == ("from the class", ".*")
    three, _ = configured(values, "operator3")
    assert (three.text, three.block_size) == ("from the class", 3)


LADDER = [
    {"dt.template.c.matchClassNameRegExp": r".*\.Reader", "dt.template.c.blockSize": "{}"},
    {"dt.template.a.matchAppNameRegExp": "app.", "dt.template.a.blockSize": "{}"},
    {"dt.template.i.matchIdRegExp": r"operator\d", "dt.template.i.blockSize": "{}"},
    {"dt.operator.operator1.template": "r", "dt.template.r.blockSize": "{}"},
    {"dt.operator.*.blockSize": "{}"},
]


@pytest.mark.parametrize(
    "rung",
    range(1, len(LADDER)),
    ids=["by application before by class", "by name", "by reference", "any key of the operator"],
)
def test_the_ladder_of_templates(rung):
    values = {}
    for number in (rung, rung - 1):
        values |= {key: value.format(number) for key, value in LADDER[number].items()}
    assert configured(values)[0].block_size == rung


@pytest.mark.parametrize("pattern", ["Reader", "tests.conf.samples.Reader", ".*Reader"])
def test_a_class_is_matched_by_its_simple_or_its_full_name(pattern):
    values = {"dt.template.t.matchClassNameRegExp": pattern, "dt.template.t.blockSize": "7"}
    assert configured(values)[0].block_size == 7


def test_a_template_may_hold_more_than_an_operator_has():
    settings = Settings(config({"dt.template.t.matchIdRegExp": ".*", "dt.template.t.blockSize": "7"}), "app1")
    settings.configure("feed", Feed())
    settings.configure("reader", Reader())
    assert settings.unmatched() == []


USED, FITS_ALL = {"dt.operator.operator1.template": "t"}, {"dt.template.t.matchIdRegExp": ".*"}
NOT_USED = "write operator.NAME.template=t, or give it a matchIdRegExp that fits an operator"
NO_PROPERTY = "operator1 has no property 'blokSize'"
NO_MATCH = "template 't' matches no operator by this pattern"


@pytest.mark.parametrize(
    ("values", "problem", "help_"),
    [
        ({"dt.template.t.blockSize": "7"}, "no operator uses template 't'", NOT_USED),
        ({"dt.template.t.matchIdRegExp": "writer"}, NO_MATCH, "operators here: 'operator1'"),
        ({"dt.template.t.matchIdRegExp": "("} | USED, "'(' is not a pattern: missing ): (", HELP),
        ({"dt.operator.operator1.template": "tt"} | FITS_ALL, "there is no template 'tt'", "did you mean 't'?"),
        ({"dt.template.t.blokSize": "7"} | FITS_ALL, NO_PROPERTY, "did you mean 'block_size'?"),
    ],
    ids=["not used", "no operator matches", "no pattern", "no such template", "no such property"],
)
def test_a_template_that_does_nothing_is_reported(values, problem, help_):
    (fault,) = configured(values)[1].unmatched()
    assert (fault.problem, fault.help) == (f"{next(iter(values))}: {problem}", help_)
