"""`dagkit new`: a folder with what one needs to begin, and copies of the examples."""

import sys
from pathlib import Path

import pytest

from dagkit.cli.making.examples import SAMPLES, examples
from tests.cli.conftest import ROOT
from tests.patience import LONG_WINDOWS


def test_a_new_application_is_valid_named_after_its_folder_and_runs_as_the_command_says(dagkit, folder, monkeypatch):
    answer = dagkit("new", "my-words")
    assert answer.out == "my-words: app.py, input/lines.txt, properties.properties, test_app.py\n"
    assert "dagkit launch app.py --once --reference" in answer.err
    assert dagkit("validate", "my-words").out.startswith("MyWords is valid: 4 operators")
    monkeypatch.chdir(folder / "my-words")
    assert dagkit("launch", "app.py", "--once", "--reference").code == 0
    (written,) = (folder / "my-words" / "output").iterdir()
    assert written.read_text() == "a first line\na second line, after a blank one\n"


def test_a_new_application_can_be_launched_by_the_same_command_which_prints_others_that_work_here(dagkit, folder):
    answer = dagkit("new", "words", "--launch", **LONG_WINDOWS)
    assert answer.code == 0
    assert "\nWords: 1 window, 47 B read, 46 B written to 1 file in " in answer.out
    written_at, sample_at = ((folder / "words" / name).stat().st_mtime for name in ("app.py", "input/lines.txt"))
    assert sample_at < written_at - 50, "no launch waits for it"
    (written,) = (folder / "words" / "output").iterdir()
    assert written.read_text() == "a first line\na second line, after a blank one\n"
    assert Path.cwd() == folder
    assert "output: words/output (Writer)\nledger: dagkit ledger show words/.dagkit/Words\n" in answer.out
    assert dagkit("ledger", "show", "words/.dagkit/Words").code == 0


@pytest.mark.gate(2)
@pytest.mark.slow
@pytest.mark.parametrize("example", [*SAMPLES])
def test_an_example_with_input_can_be_launched_by_the_same_command(dagkit, folder, example):
    answer = dagkit("new", "mine", "--launch", "--example", example)
    assert (answer.code, "no input found" in answer.out) == (0, False), answer.err
    assert [file for file in (folder / "mine" / "output").rglob("*") if file.is_file() and file.stat().st_size]


def test_without_pytest_the_command_says_how_to_install_it(dagkit, folder, monkeypatch):
    assert "pip install" not in dagkit("new", "one").err
    monkeypatch.setitem(sys.modules, "pytest", None)
    assert "  python -m pip install pytest\n  python -m pytest\n" in dagkit("new", "two").err


@pytest.mark.parametrize("example", [(), ("--example", "line_filter")])
def test_a_folder_that_cannot_be_made_is_reported(dagkit, folder, example):
    (folder / "file").touch()
    problem, help_ = "file/words cannot be made: Not a directory", "give a folder in a place where this user may write"
    dagkit("new", "file/words", *example).fails(5, f"{problem} [result-unwritable]\n  help: {help_}\n")


@pytest.mark.slow
def test_the_test_of_a_new_application_passes(dagkit, process, folder):
    dagkit("new", "words")
    passed = process(python=("-m", "pytest", "-q", "-p", "no:cacheprovider", "words"))
    assert (passed.code, "1 passed" in passed.out) == (0, True), passed.out


def test_an_example_is_copied_with_its_property_file_and_every_application_of_the_repository_is_one(dagkit):
    answer = dagkit("new", "mine", "--example", "line_filter", "--json")
    assert {"app.py", "properties.xml"} <= set(answer.document["files"])
    assert dagkit("validate", "mine").code == 0
    assert set(examples()) == {app.parent.name for app in (ROOT / "apps").glob("*/app.py")}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("there", "'there' exists already; name a folder that does not exist"),
        ("new --example line_filtre", "there is no example 'line_filtre'; did you mean 'line_filter'?"),
        ("1st", "'1st' makes no name of a class: begin it with a letter of A to Z"),
        ("", "Missing argument 'FOLDER'."),
        ("words --launch --json", ""),
        ("words --launch --example avro_blocks", ""),
    ],
)
def test_nothing_is_overwritten_and_nothing_guessed(dagkit, folder, arguments, problem):
    (folder / "there").mkdir()
    answer = dagkit("new", *arguments.split())
    assert (answer.code, problem in answer.err) == (2, True)
    assert [entry.name for entry in folder.iterdir()] == ["there"]


@pytest.mark.parametrize("arguments", [("--example",), ("words", "--example")], ids=" ".join)
def test_the_examples_are_listed_if_none_is_named(dagkit, folder, arguments):
    answer = dagkit("new", *arguments)
    assert answer.code == 0
    assert [line.split()[0] for line in answer.out.splitlines()] == list(examples())
    assert "word_count      Counts the words of text files" in answer.out
    assert list(folder.iterdir()) == []
