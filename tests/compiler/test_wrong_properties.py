"""An invalid property is reported with its value, at the key that set it."""

import pytest
from pydantic import PositiveInt, model_validator

from dagkit import Config, InputOperator
from dagkit.api.configuration import Entry, Origin, Source
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults, Diagnostic, Where
from dagkit_operators import DirectoryScanner, FileSplitterInput
from tests.compiler.cast import faults


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
    """Must be given where to look."""

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


def test_a_part_that_is_set_as_a_property_is_answered_by_its_place():
    helps = {fault.code: fault.help for fault in faults(_with_files)}
    assert helps["property-unknown"] == "did you mean 'scanner.files'? In code: scanner=DirectoryScanner(files=…)"
    assert helps["property-invalid"].startswith("set scanner, a DirectoryScanner, where split is made")
    by_key = _told(FileSplitterInput(scanner=DirectoryScanner(files=("in",))), files="other")
    assert "has no property 'files'" in by_key.problem
    assert "did you mean 'scanner.files'?" in by_key.help


def test_a_part_of_that_name_that_refuses_the_value_is_not_meant():
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
