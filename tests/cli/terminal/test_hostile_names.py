"""A file's name writes nothing to a terminal but its characters: no escape sequence, no bell, no line of its own."""

import json
import os
import re

import pytest

from dagkit.cli.terminal.output import Output
from dagkit.errors import DagkitError, printable
from tests.old_files import aged

NAME = "a\x1b]0;\x07\nforged: all is lost\r\x9b31m\u202e.txt"
SHOWN = r"a\u001b]0;\u0007\nforged: all is lost\r\u009b31m\u202e.txt"
CONTROLS = re.compile("[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\\u202e]|^forged", re.MULTILINE)

APPLICATION = f"""
from dagkit import Dag
from dagkit_operators import Items, MatchFiles, PartWriter, ReadFiles

FOLDER = {NAME!r}

def populate_dag(dag: Dag, conf) -> None:
    patterns = dag.add_operator("Patterns", Items[str](items=(FOLDER,)))
    match = dag.add_operator("Match", MatchFiles(continuously=True))
    read = dag.add_operator("Read", ReadFiles(parse=int))
    writer = dag.add_operator("Writer", PartWriter(file_path="output", format=str))
    patterns >> match >> read >> writer
"""


def check(answer):
    """All that was printed, without a control character."""
    printed = answer.out + answer.err
    assert not CONTROLS.findall(printed), repr(printed)
    return printed


@pytest.fixture
def application(folder, write):
    """An application that reads numbers from a folder of that name, in which there is a file of that name."""
    (folder / NAME).mkdir()
    (folder / NAME / NAME).write_text("1\n2\n")
    aged(folder / NAME / NAME)
    return write("app.py", APPLICATION).name


LAUNCH = ("launch", "app.py", "--once", "--reference", "--no-sync", "--path", "home")


def test_the_name_of_a_file_on_which_a_launch_fails_is_escaped(dagkit, application, folder):
    (folder / NAME / NAME).write_text("1\nx\n")
    aged(folder / NAME / NAME)
    answer = dagkit(*LAUNCH)
    assert answer.code == 7
    assert f"{SHOWN}/{SHOWN}: the line at byte 2 is rejected" in check(answer)


def test_names_in_a_ledger_are_escaped(dagkit, application, folder):
    check(dagkit(*LAUNCH, "-v"))
    assert SHOWN in check(dagkit("splits", "home", "--waiting"))
    answer = dagkit("splits", "home", "--waiting", "--json")
    check(answer)
    assert json.dumps(NAME)[1:-1] in json.dumps(answer.document)
    for verb in ("ls", "show", "verify"):
        check(dagkit("ledger", verb, "home"))
        answer = dagkit("ledger", verb, "home", "--json")
        check(answer)
        assert answer.document


@pytest.mark.parametrize("verb", ["validate", "plan", "explain", "config", "graph"])
def test_names_in_an_application_are_escaped(dagkit, application, verb):
    check(dagkit(verb, "app.py", "-v"))


@pytest.mark.slow
def test_names_in_warnings_are_escaped(process, application, folder):
    os.mkfifo(folder / NAME / "b\n\x1b")
    answer = process(*LAUNCH)
    assert answer.code == 0
    assert rf"{SHOWN}/b\n\u001b is a FIFO, and is skipped" in check(answer)


def test_words_of_others_are_escaped_and_keep_their_lines_and_our_colours_stay(capsys, monkeypatch):
    Output().failure(DagkitError("one\x1b[1m\n\ttwo\x07"))
    Output().message("three\x08")
    Output().result("four\x7f")
    printed = capsys.readouterr()
    assert (printed.err, printed.out) == ("one\\u001b[1m\n\ttwo\\u0007\nthree\\u0008\n", "four\\u007f\n")
    monkeypatch.setenv("FORCE_COLOR", "1")
    Output().failure(DagkitError("it is so [port-taken]\n  help: x\x1b[1m"))
    assert capsys.readouterr().err == "it is so \x1b[2m[port-taken]\x1b[0m\n\x1b[36m  help:\x1b[0m x\\u001b[1m\n"


def test_text_without_control_characters_is_itself():
    assert printable("a ä \N{SNOWMAN} \U0001f600 \\") == "a ä \N{SNOWMAN} \U0001f600 \\"
    assert printable("\udcff\u2028\n") == r"\udcff\u2028\n"
