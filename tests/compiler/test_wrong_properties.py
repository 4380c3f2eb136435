"""An invalid property is reported with its value, at the key that set it."""

from typing import Self

import pytest
from pydantic import PositiveInt, model_validator

from dagkit import Config, Dag, InputOperator
from dagkit.api.configuration import Entry, Origin, Source
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults, Diagnostic, Where
from dagkit_operators import DirectoryScanner, FileSplitterInput


class Range(InputOperator):
    """Bounds that belong together."""

    low: int = 1
    high: int = 9
    name: str = ""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError("low lies above high")
        return self


def _told(operator: InputOperator | None = None, /, **properties: str) -> Diagnostic:
    entries = [
        Entry(key, value, Origin(Source.FILE, Where("site.xml", line), key))
        for line, (name, value) in enumerate(properties.items(), 1)
        for key in [f"dt.operator.range.prop.{name}"]
    ]

    def draw(dag: Dag, conf: Config) -> None:
        dag.add_operator("range", operator or Range())

    try:
        compile_application(draw, Config(entries))
    except ApplicationFaults as faults:
        (told,) = faults.diagnostics
        return told
    raise AssertionError("nothing was reported")


def test_properties_that_do_not_go_together_point_at_a_key_that_set_one():
    told = _told(name="x", low="10")
    assert told.problem == "range is wrong: low lies above high"
    assert told.help == "fix the value of dt.operator.range.prop.low at site.xml:2"
    assert told.where == Where("site.xml", 2)


def test_a_fault_in_code_shows_the_value():
    dag = Dag()
    dag.add_operator("range", Range(low="perhaps"))
    with pytest.raises(ApplicationFaults, match=r"range\.low cannot be 'perhaps': "):
        compile_application(dag)


class Bounded(InputOperator):
    """One property with a bound."""

    count: PositiveInt = 1


def test_a_value_from_a_file_is_reported_with_its_key():
    key = "dt.operator.bounded.prop.count"

    def draw(dag: Dag, conf: Config) -> None:
        dag.add_operator("bounded", Bounded())

    entry = Entry(key, "-3", Origin(Source.FILE, Where("site.xml", 4), key))
    with pytest.raises(ApplicationFaults, match=r"bounded\.count cannot be '?-3'?: ") as raised:
        compile_application(draw, Config([entry]))
    assert raised.value.diagnostics[0].help == f"fix the value of {key} at site.xml:4"


class Looking(InputOperator):
    """Must be given where to look."""

    scanner: DirectoryScanner


def test_a_part_that_does_not_fit_is_one_fault_at_its_own_key():
    told = _told(Looking(), **{"scanner.files": "in", "scanner.filePatternRegularExp": "*.csv"})
    assert told.problem.startswith("scanner of range cannot be '*.csv': file_pattern_regular_exp: ")
    assert told.where == Where("site.xml", 2)


def _with_files(dag: Dag, conf: Config) -> None:
    dag.add_operator("split", FileSplitterInput(files=["in"]))  # the mistake under test


def test_a_part_that_is_set_as_a_property_is_answered_by_its_place():
    with pytest.raises(ApplicationFaults) as wrong:
        compile_application(_with_files)
    helps = {diagnostic.code: diagnostic.help for diagnostic in wrong.value.diagnostics}
    assert helps["property-unknown"] == "did you mean 'scanner.files'? In code: scanner=DirectoryScanner(files=…)"
    assert helps["property-invalid"].startswith("set scanner, a DirectoryScanner, where split is made")


def test_a_key_of_a_part_without_the_part_is_answered_by_its_place():
    def draw(dag: Dag, conf: Config) -> None:
        dag.add_operator("split", FileSplitterInput(scanner=DirectoryScanner(files=("in",))))

    with pytest.raises(ApplicationFaults, match=r"has no property 'files'(.|\n)*did you mean 'scanner\.files'\?"):
        compile_application(draw, Config.of({"dt.operator.split.prop.files": "other"}))


def test_a_file_that_cannot_be_read_is_reported_before_what_it_did_not_set():
    unread = Diagnostic("file-unreadable", "it is not TOML", "fix the line", Where("properties.toml"))
    with pytest.raises(ApplicationFaults) as wrong:
        compile_application(_with_files, conf_faults=[unread])
    assert wrong.value.codes[0] == "file-unreadable"
    assert len(wrong.value.codes) > 1
