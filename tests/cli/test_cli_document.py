"""docs/cli.md lists exactly the commands, options and exit codes that exist."""

import re

import click
import pytest

from dagkit.cli import main
from dagkit.cli.compiling.diff import CHANGED
from dagkit.cli.compiling.graph import graph
from dagkit.cli.group import COMMANDS
from dagkit.cli.reference.config import config
from dagkit.errors import EXIT_CODES, DagkitError
from tests.cli.conftest import ROOT
from tests.exceptions import exceptions

DOCUMENT = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", DOCUMENT, re.DOTALL | re.MULTILINE))
SHARED = SECTIONS["Options that commands share"]


SHARED_OPTIONS = set(re.findall(r"`(-[\w-]*)", SHARED))


def test_every_verb_has_a_section_in_the_order_of_the_list_and_help_lists_it_with_its_purpose(dagkit):
    headings = [title.removeprefix("dagkit ") for title in SECTIONS if title.startswith("dagkit ")]
    assert headings == [command.name for command in COMMANDS]
    shown = " ".join(dagkit("--help").out.split())
    assert all(f"{command.name} {command.purpose}" in shown for command in COMMANDS)


def _commands():
    context = click.Context(main)
    return {name: main.get_command(context, name) for name in main.list_commands(context)}


def _spellings(command):
    return {spelling for each in command.params if isinstance(each, click.Option) for spelling in each.opts}


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_the_document_lists_exactly_the_options_that_exist(name):
    command = _commands()[name]
    listed = set(re.findall(r"^\| (`-.*?) \|", SECTIONS[f"dagkit {name}"], re.MULTILINE))
    own = {spelling for row in listed for spelling in re.findall(r"`(-[\w-]*)", row)}
    shared = set(re.findall(r"`(-[\w-]*)", SHARED))
    assert _spellings(command) - shared == own


def test_the_options_that_commands_share_and_the_commands_of_the_ledger_are_listed():
    shared = set(re.findall(r"^\| `(-[\w-]*)|, `(-[\w-]*)", SHARED, re.MULTILINE))
    spellings = {spelling for pair in shared for spelling in pair if spelling}
    assert _spellings(config) & _spellings(graph) == spellings
    assert all(f"`{name}`" in SECTIONS["dagkit ledger"] for name in _commands()["ledger"].commands)


@pytest.mark.parametrize("group", ["scale", "files"])
def test_every_command_of_a_group_is_listed_with_its_options(group):
    command = _commands()[group]
    section = SECTIONS[f"dagkit {group}"]
    told = set(re.findall(r"^\| `(\w+)` \| `(-[\w-]+)", section, re.MULTILINE))
    assert all(f"`{name} " in section for name in command.commands)
    assert told == {
        (name, option)
        for name, each in command.commands.items()
        for option in _spellings(each) - {"--json", "-q", "--quiet", "-v", "--verbose", *SHARED_OPTIONS}
    }


def test_every_exit_code_and_every_schema_is_listed():
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", SECTIONS["Exit codes"], re.MULTILINE)}
    owned = {each.exit_code for each in exceptions() if issubclass(each, DagkitError)} | {*EXIT_CODES.values()}
    assert told == owned | {0, click.UsageError.exit_code, CHANGED}
    sources = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "dagkit" / "cli").glob("*.py") if path.stem != "ledger"
    )
    assert set(re.findall(r'"(dagkit\.\w+/\d+)"', sources)) <= set(re.findall(r"`(dagkit\.\w+/\d+)`", DOCUMENT))


@pytest.mark.parametrize(
    ("command", "shown"), re.findall(r"^```text\n\$ dagkit ([^\n]*)\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE)
)
def test_what_shows_a_fingerprint_is_right_but_for_its_digits(dagkit, monkeypatch, command, shown):
    monkeypatch.chdir(ROOT)
    answer = dagkit(*command.split())
    assert _without_digits(answer.out + answer.err) == _without_digits(shown)


def _without_digits(text):
    return re.sub(r"\b[0-9a-f]{16}\b", "…", text)
