"""Programs that mypy must accept, and lines that it must refuse: `# error: code` says which, and with which code.

Where no type satisfies both ends of a wire, some versions of mypy blame an argument and some the call as a whole.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.processes import run_program

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(path for path in Path(__file__).parent.glob("*.py") if path.name != Path(__file__).name)
MARK = re.compile(r"# error: ([a-z-]+(?: or [a-z-]+)*)")
TOLD = re.compile(r"(?P<file>[^:]+):(?P<line>\d+): error: .*\[(?P<code>[a-z-]+)\]")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def refused() -> dict[str, dict[int, str]]:
    """What mypy refuses in each program: one run for all, as strict as the project is."""
    options = ("--no-error-summary", "--no-pretty", "--hide-error-context")
    command = [sys.executable, "-m", "mypy", *options, *map(str, PROGRAMS)]
    run = run_program(command, cwd=ROOT, check=False, seconds=120)
    told: dict[str, dict[int, str]] = defaultdict(dict)
    for line in run.stdout.splitlines():
        match = TOLD.fullmatch(line)
        if match:
            told[Path(match["file"]).name][int(match["line"])] = match["code"]
        assert match or ": note: " in line, f"mypy said {line!r}"
    assert not run.stderr, run.stderr
    return told


@pytest.mark.gate(1)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_mypy_refuses_what_is_wrong_and_nothing_else(program: Path, refused: dict[str, dict[int, str]]) -> None:
    lines = enumerate(program.read_text().splitlines(), start=1)
    marked = {number: match[1].split(" or ") for number, line in lines if (match := MARK.search(line))}
    told = refused[program.name]
    assert sorted(told) == sorted(marked)
    assert {number: code for number, code in told.items() if code not in marked[number]} == {}
