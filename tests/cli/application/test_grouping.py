"""A group calls its usual command where none is named, and other names of commands are understood."""

import pytest

from dagkit.cli.group import ALIASES


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (("files", "word_count.py"), ("files", "ls", "word_count.py")),
        (("work", "word_count.py"), ("work", "ls", "word_count.py")),
        (("scale", "nowhere"), ("scale", "explain", "nowhere")),
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.usefixtures("word_count")
def test_a_group_without_a_command_calls_the_usual_one(dagkit, short, long):
    assert dagkit(*short) == dagkit(*long)


def test_a_misspelt_command_of_a_group_is_not_taken_for_an_application(dagkit):
    dagkit("files", "list", "app.py").fails(2, "Did you mean 'ls'")


@pytest.mark.parametrize("arguments", [(), ("launch",), ("files", "ls")], ids=" ".join)
def test_help_is_a_command_too(dagkit, arguments):
    assert dagkit("help", *arguments) == dagkit(*arguments, "--help")


def test_to_start_is_to_launch_and_not_to_restart():
    assert ALIASES["start"] == "launch"
