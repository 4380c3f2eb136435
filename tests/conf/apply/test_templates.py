"""Templates: who gets what they hold, and who beats whom."""

import pytest

from dagkit.conf.apply.settings import Settings
from dagkit.patterns import HELP
from tests.conf.samples import Feed, Reader, config


def configured(values, name="operator1", component=None):
    settings = Settings(config(values)).of("app1")
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
    values = {"dt.template.t.matchIdRegExp": ".*", "dt.template.t.blockSize": "7"}
    settings = Settings(config(values)).of("app1")
    settings.configure("feed", Feed())
    settings.configure("reader", Reader())
    assert settings.unmatched() == []


@pytest.mark.parametrize(
    ("values", "problem", "help_"),
    [
        (
            {"dt.template.t.blockSize": "7"},
            "dt.template.t.blockSize: no operator uses template 't'",
            "write operator.NAME.template=t, or give it a matchIdRegExp that fits an operator",
        ),
        (
            {"dt.template.t.matchIdRegExp": "writer"},
            "dt.template.t.matchIdRegExp: template 't' matches no operator by this pattern",
            "operators here: 'operator1'",
        ),
        (
            {"dt.template.t.matchIdRegExp": "(", "dt.operator.operator1.template": "t"},
            "dt.template.t.matchIdRegExp: '(' is not a pattern: missing ): (",
            HELP,
        ),
        (
            {"dt.operator.operator1.template": "tt", "dt.template.t.matchIdRegExp": ".*"},
            "dt.operator.operator1.template: there is no template 'tt'",
            "did you mean 't'?",
        ),
        (
            {"dt.template.t.matchIdRegExp": ".*", "dt.template.t.blokSize": "7"},
            "dt.template.t.blokSize: operator1 has no property 'blokSize'",
            "did you mean 'block_size'?",
        ),
    ],
)
def test_a_template_that_does_nothing_is_reported(values, problem, help_):
    _, settings = configured(values)
    assert [(told.problem, told.help) for told in settings.unmatched()] == [(problem, help_)]
