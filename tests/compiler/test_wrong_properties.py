"""An invalid property is reported with its value, at the key that set it."""

from typing import Self

import pytest
from pydantic import BaseModel, PositiveInt, field_validator, model_validator

from dagkit import Config, InputOperator
from dagkit.api.configuration import Entry, Origin, Source
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults, Diagnostic, Where
from dagkit.plan import write_plan
from dagkit_operators import DirectoryScanner, FileSplitterInput
from tests.compiler.cast import faults, problems


class Range(InputOperator):
    """Bounds, of one property and of two that belong together."""

    low: int = 1
    high: int = 9
    name: str = ""
    count: PositiveInt = 1

    @model_validator(mode="after")
    def _in_order(self):
        if self.low > self.high:
            raise ValueError("low lies above high")
        return self


class Looking(InputOperator):
    scanner: DirectoryScanner


def _told(operator, **properties):
    """The one fault of an operator called `range`, whose properties stand on the lines of a file."""
    lines = enumerate({f"dt.operator.range.prop.{name}": value for name, value in properties.items()}.items(), 1)
    entries = [Entry(key, value, Origin(Source.FILE, Where("site.xml", line), key)) for line, (key, value) in lines]
    (fault,) = faults(lambda dag, conf: dag.add_operator("range", operator), Config(entries))
    return fault


def test_a_value_that_is_invalid_or_does_not_go_together_with_another_is_reported_with_its_key():
    told = _told(Range(), name="x", low="10")
    assert (told.problem, told.where) == ("range is wrong: low lies above high", Where("site.xml", 2))
    assert told.help == "fix the value of dt.operator.range.prop.low at site.xml:2"
    told = _told(Range(), name="x", count="-3")
    assert told.problem.replace("'", "").startswith("range.count cannot be -3: ")
    assert told.help == "fix the value of dt.operator.range.prop.count at site.xml:2"
    of_code = _told(Range(low=5), count="3", high="4")
    assert (of_code.problem, of_code.help) == (
        "range is wrong: low lies above high",
        "fix the value of dt.operator.range.prop.high at site.xml:2",
    )
    of_code = _told(Range(low=5, high=4), count="3")
    assert of_code.where != Where("site.xml", 1), "the line of another property"
    assert of_code.help == "fix the properties where range is made"
    assert _told(Range(low="perhaps")).problem.startswith("range.low cannot be 'perhaps': ")


def test_a_part_that_does_not_fit_is_one_fault_at_its_own_key():
    told = _told(Looking(), **{"scanner.files": "in", "scanner.filePatternRegularExp": "*.csv"})
    assert told.problem.startswith("scanner of range cannot be '*.csv': file_pattern_regular_exp: ")
    assert told.where == Where("site.xml", 2)


def _with_files(dag, conf):
    dag.add_operator("split", FileSplitterInput(files=["in"]))


def test_a_part_that_is_set_as_a_property_is_answered_by_its_place_if_it_can_have_the_value():
    helps = {fault.code: fault.help for fault in faults(_with_files)}
    assert helps["property-unknown"] == "did you mean 'scanner.files'? In code: scanner=DirectoryScanner(files=…)"
    assert helps["property-invalid"].startswith("set scanner, a DirectoryScanner, where split is made")
    by_key = _told(FileSplitterInput(scanner=DirectoryScanner(files=("in",))), files="other")
    assert "has no property 'files'" in by_key.problem
    assert "did you mean 'scanner.files'?" in by_key.help

    def draw(dag, conf):
        dag.add_operator("split", FileSplitterInput(directories=["in"]))

    help_ = next(fault.help for fault in faults(draw) if fault.code == "property-unknown")
    assert help_ == "did you mean 'scanner.files'? In code: scanner=DirectoryScanner(files=…)"


def test_a_part_that_cannot_be_made_is_reported_in_one_line():
    def draw(dag, conf):
        dag.add_operator("split", FileSplitterInput(scanner=DirectoryScanner(directories=["in"])))

    (fault,) = faults(draw)
    assert fault.problem.endswith(
        "raised ValidationError: DirectoryScanner: files: field required; directories: input should be a valid boolean"
    )


def test_a_file_that_cannot_be_read_is_reported_before_what_it_did_not_set():
    unread = Diagnostic("file-unreadable", "it is not TOML", "fix the line", Where("properties.toml"))
    with pytest.raises(ApplicationFaults) as wrong:
        compile_application(_with_files, conf_faults=[unread])
    assert wrong.value.codes[0] == "file-unreadable"
    assert len(wrong.value.codes) > 1


class Login(BaseModel):
    phrase: str = ""


class Mailbox(InputOperator):
    phrase: str = ""
    number: int = 0
    login: Login = Login()


class Refusing(InputOperator):
    url: str = ""

    @field_validator("url")
    @classmethod
    def _refuses(cls, url):
        raise ValueError("it is refused")


def draw(dag, conf):
    dag.add_operator("mail", Mailbox())


def configured(path):
    key = f"dt.operator.mail.prop.{path}"
    return Config([Entry(key, "hunter2", Origin(Source.FILE, None, key, "${env:PHRASE}"))])


@pytest.mark.parametrize("path", ["phrase", "login.phrase"])
def test_a_plan_holds_the_reference_and_not_the_secret(path):
    compilation = compile_application(draw, configured(path))
    text = write_plan(compilation.plan)
    assert ("hunter2" in text, "${env:PHRASE}" in text) == (False, True)
    assert "hunter2" in repr(compilation.graph.by_name["mail"].operator)


def test_a_secret_that_is_refused_is_not_shown():
    (fault,) = faults(draw, configured("number"))
    assert "mail.number" in fault.problem
    assert "hunter2" not in str(fault)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:hunter2@host/db", "postgresql://**********@host/db"),
        ("https://host/path?sig=hunter2&se=1", "https://host/path?**********"),
        *((plain, plain) for plain in ("https://host/path@2/file", "what?")),
    ],
)
def test_a_url_that_is_refused_is_shown_without_its_user_and_its_query(url, shown):
    told = problems(lambda dag, conf: dag.add_operator("mail", Refusing(url=url)))
    assert told == [f"mail.url cannot be {shown!r}: it is refused"]


class Bound(InputOperator):
    phrase: str = ""
    least: int = 0
    most: int = 9

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"least is {self.least}, and most is {self.most}; the phrase is {self.phrase}")
        return self


@pytest.mark.parametrize(("conf", "shown"), [(configured("phrase"), "${env:PHRASE}"), (None, "")])
def test_a_contradiction_is_explained_without_the_secret_beside_it(conf, shown):
    told = problems(lambda dag, _: dag.add_operator("mail", Bound(least=10)), conf)
    assert told == [f"mail is wrong: least is 10, and most is 9; the phrase is {shown}"]
