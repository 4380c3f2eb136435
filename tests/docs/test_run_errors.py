"""The second part of `docs/errors.md`: each cause gives its code, and its cure, in the same folder, succeeds."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import dagkit
import dagkit_operators
from dagkit.cli.terminal.output import Interrupted, WrongUsage
from dagkit.errors import CODES, RUN_CODES, ApplicationFaults, DagkitError, RunFailure
from dagkit.ledger import LedgerError
from dagkit.ranges import RangeFault
from tests.docs.fences import ROOT, Fence, fences_in, headings_in
from tests.docs.running import Room

PAGE = ROOT / "docs/errors.md"
FENCES = fences_in(PAGE)
SHARED = [fence for fence in FENCES if fence.role == "shared"]
ON_SPARK = {"codec-failed", "session-mismatched", "spark-failed", "spark-ended"}
"""Codes whose programs start or kill a Spark, and run in a process of their own."""
WITHOUT_CURE = {"worker-failed", "window-lost", "spark-incomplete", "spark-ended", "decision-missing"}
"""Codes whose cure is on other machines, or a long run."""
ALONE = """
import json, sys
from dagkit.errors import RunFailure

cause, *cures = json.loads(sys.stdin.read())
module = {"__name__": "__main__"}
try:
    exec(cause, module)
except RunFailure as failure:
    print(failure.code)
for cure in cures:
    exec(cure, module)
print("cured")
"""


def test_every_code_has_a_heading_in_the_order_of_the_lists() -> None:
    assert headings_in(PAGE, 2) == [*CODES, *RUN_CODES]


def test_every_exception_has_a_code_of_its_own_and_every_code_an_exception() -> None:
    for package in (dagkit, dagkit_operators):
        root = Path(package.__path__[0])
        for file in root.rglob("*.py"):
            if file.name != "__main__.py":
                importlib.import_module(".".join(file.relative_to(root.parent).with_suffix("").parts))
    kinds = [kind for kind in _kinds_of(RunFailure) if kind.__module__.startswith("dagkit") and kind is not RangeFault]
    assert {kind.code for kind in kinds} == set(RUN_CODES)
    owners = {code: {k for k in kinds if k.code == code and "code" in vars(k)} for code in RUN_CODES}
    shared = {code: {kind.__name__ for kind in owned} for code, owned in owners.items() if len(owned) != 1}
    assert shared == {"input-unreadable": {"InputUnreadable", "InputRefused"}}


def test_no_other_exception_is_without_a_code() -> None:
    others = {kind for kind in DagkitError.__subclasses__() if kind.__module__.startswith("dagkit")}
    assert others == {RunFailure, ApplicationFaults, LedgerError, Interrupted, WrongUsage}


@pytest.mark.parametrize("code", RUN_CODES)
def test_every_heading_shows_a_cause_and_where_it_can_a_cure(code: str) -> None:
    shown = _under(code)
    assert any(_is_cause(fence) for fence in shown)
    assert any(_is_cure(fence) for fence in shown) is (code not in WITHOUT_CURE)


@pytest.mark.parametrize("code", [code for code in RUN_CODES if code not in ON_SPARK])
def test_the_cause_gives_its_code_and_the_cure_succeeds(code: str, room: Room) -> None:
    for fence in SHARED:
        room.run(fence)
    for fence in _under(code):
        if fence.file_name is not None:
            room.keep(fence)
        elif fence.language == "console":
            assert room.type_in(fence) == fence.text
            assert (f" [{code}]\n  help: " in fence.text) is _is_cause(fence)
        elif _is_cause(fence):
            with pytest.raises(RunFailure) as raised:
                room.run(fence)
            assert (raised.value.code, bool(raised.value.help)) == (code, True)
        else:
            room.run(fence)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("code", sorted(ON_SPARK))
def test_on_spark_the_cause_gives_its_code_and_the_cure_succeeds(code: str, tmp_path: Path) -> None:
    programs = json.dumps([fence.text for fence in _under(code)])
    answer = subprocess.run(  # noqa: S603 - our own page
        [sys.executable, "-c", ALONE], input=programs, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert answer.stdout.split() == [code, "cured"]


def _kinds_of(kind: type[RunFailure]) -> list[type[RunFailure]]:
    """All subclasses, however deep."""
    return [found for below in kind.__subclasses__() for found in (below, *_kinds_of(below))]


def _under(code: str) -> list[Fence]:
    return [fence for fence in FENCES if fence.heading == code]


def _is_cause(fence: Fence) -> bool:
    return fence.role == "fault" or fence.info.startswith("console exits")


def _is_cure(fence: Fence) -> bool:
    return fence.role == "repair" or fence.info == "console"
