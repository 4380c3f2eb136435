"""An import of a class under its name in Apex says what to write instead."""

import importlib

import pytest
from click.testing import CliRunner

import dagkit
import dagkit_operators
from dagkit.cli import main
from dagkit.conf.values.classes import ClassNotFound, find_class
from dagkit.conf.values.property_types import meant_property
from dagkit.ground.names_of_apex import COUNTERPARTS, NamedElsewhere, hint
from dagkit_operators import DirectoryScanner, LineReader, ReadAheadLineReaderContext

LINES = (
    "its counterpart is LineReader, or BlockReader[T], with reader_context=LineReaderContext(): "
    "write from dagkit_operators import LineReader, BlockReader, LineReaderContext"
)


def test_counterparts_can_be_imported_and_their_names_in_apex_cannot():
    for name, counterpart in COUNTERPARTS.items():
        for full in counterpart.names:
            module, _, simple = full.partition(".")
            assert simple in importlib.import_module(module).__all__, f"{full}, for {name}"
    assert not {*dagkit.__all__, *dagkit_operators.__all__} & {*COUNTERPARTS}


@pytest.mark.parametrize(
    ("library", "name", "note"),
    [
        (dagkit_operators, "AbstractFSLineReader", LINES),
        (dagkit, "DefaultInputPort", "its counterpart is InputPort: write from dagkit import InputPort"),
        (dagkit, "FileSplitterInput", "write from dagkit_operators import FileSplitterInput"),
        (dagkit_operators, "Dag", "write from dagkit import Dag"),
    ],
    ids=["of Apex", "of Apex, in dagkit", "of the operators", "of dagkit"],
)
def test_the_error_of_an_import_has_what_to_write_as_a_note(library, name, note):
    with pytest.raises(NamedElsewhere, match=f"cannot import name '{name}'") as caught:
        exec(f"from {library.__name__} import {name}")  # noqa: S102 - as an author writes it
    assert caught.value.__notes__ == [note]


def test_other_names_are_missing_as_usual():
    assert not hasattr(dagkit_operators, "AbstractNothing")
    assert hint("AbstractNothing") is None


@pytest.mark.parametrize("module", ["dagkit_operators", "dagkit", "operators"])
def test_dagkit_validate_says_what_to_write(module, tmp_path):
    (tmp_path / "operators.py").touch()
    application = tmp_path / "ported.py"
    application.write_text(f"from {module} import AbstractFSLineReader\n")
    answer = CliRunner().invoke(main, ["validate", str(application)])
    assert "cannot import name 'AbstractFSLineReader'" in answer.output
    assert f"help: {LINES}\n" in answer.output


@pytest.mark.parametrize(
    "name", ["com.datatorrent.lib.io.fs.AbstractFileOutputOperator", "dagkit_operators:AbstractFileOutputOperator"]
)
def test_a_class_of_apex_in_a_setting_has_the_counterpart_as_help(name):
    with pytest.raises(ClassNotFound) as caught:
        find_class(name)
    assert caught.value.help == "its counterpart is FileOutput: write from dagkit_operators import FileOutput"


@pytest.mark.parametrize("name", ["AbstractFSLineReader", "dagkit_operators:AbstractFSLineReader"])
def test_dagkit_describe_says_what_to_describe(name):
    answer = CliRunner().invoke(main, ["describe", name])
    assert answer.exit_code != 0
    assert LINES in answer.output


@pytest.mark.parametrize(
    ("name", "counterpart"),
    [("bufferSize", "chunk_size"), ("buffer_size", "chunk_size"), ("overflowBufferSize", "longest_line")],
)
def test_a_property_of_apex_is_reported_with_its_counterpart(name, counterpart):
    for owner in (LineReader, ReadAheadLineReaderContext):
        assert meant_property(owner, name) == f"its counterpart is {counterpart!r}"
    assert "known here" in meant_property(DirectoryScanner, name)
