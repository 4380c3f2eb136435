"""Handovers on the reference: whatever is given to later partitions or lost on its way, results stay the same."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit.api.running import Until
from dagkit.backends.reference import ReferenceBackend
from dagkit.backends.reference.plain_board import PlainBoard
from dagkit.compiler import compile_application
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.program.facts import Split
from dagkit.engine.run.loop import Loop
from dagkit.engine.work.split import HANDED
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.stores import MemoryStore
from dagkit.ranges import OffsetRange
from tests.engine.cast import lines_through_filter, some_lines
from tests.engine.parts.cast import facts_in
from tests.engine.restriction_cast import CountFn, ShardReader, TableReader
from tests.engine.work_cast import Looks, Named, Numbered, numbers_expected, numbers_of_names
from tests.examples import examples
from tests.old_files import aged

LOOKS: Looks = ((("x", 9), ("y", 2), ("z", 5)), (("w", 7),))
KINDS = [Numbered, CountFn, TableReader, ShardReader]
SEEDS = st.integers(0, 2**32)


def run(draw: Any, seed: int, *, gives: float, loses: float, path: str = "nowhere") -> tuple[Ledger, Loop]:
    """Run an application whose partitions give and lose work with these probabilities."""
    chance = Random(seed)  # noqa: S311 - it chooses what is handed over
    compilation, ledger = compile_application(draw), Ledger(MemoryStore())
    backend = ReferenceBackend(
        compilation, board=lambda: PlainBoard(lambda: chance.random() < gives, lambda: chance.random() < loses)
    )
    loop = Loop(RunState(compilation, backend, ledger, RunSettings(path, until=Until.ONCE)))
    loop.run()
    assert verify(ledger).faults == ()
    return ledger, loop


def collected(loop: Loop) -> list[tuple[Any, ...]]:
    return sorted(tuple(item["~tuple"]) for state in loop.state["collect"] for item in state["arrived"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("senders", [0, 2])
def test_work_of_any_kind_is_handed_over_once(kind, senders):
    draw = numbers_of_names(LOOKS, readers=3, senders=senders, kind=kind)
    ledger, loop = run(draw, 1, gives=0.5, loses=0.0)
    assert collected(loop) == numbers_expected(LOOKS, 0, doubled=senders > 0)
    assert HANDED in {fact.why for fact in facts_in(ledger, Split)}


class WithEmptyParts(Numbered):
    """Is divided into an empty part, a half, another empty part and the rest."""

    kind = "cast.with-empty-parts/1"

    def split(self, element: Named, restriction: OffsetRange) -> Iterator[OffsetRange]:
        start, middle = restriction.start, (restriction.start + restriction.stop) // 2
        edges = (start, start, middle, middle, restriction.stop)
        yield from (OffsetRange(*each) for each in pairwise(edges))


@pytest.mark.parametrize("gives", [0.0, 0.5])
@pytest.mark.parametrize("senders", [0, 2])
def test_parts_may_be_empty(senders, gives):
    draw = numbers_of_names(LOOKS, readers=3, senders=senders, kind=WithEmptyParts)
    _, loop = run(draw, 1, gives=gives, loses=0.0)
    assert collected(loop) == numbers_expected(LOOKS, 0, doubled=senders > 0)


@given(SEEDS, st.sampled_from(KINDS), st.integers(1, 4), st.integers(0, 2), st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=examples(40))
@pytest.mark.slow
def test_a_lost_handover_changes_no_result(seed, kind, readers, senders, loses):
    draw = numbers_of_names(LOOKS, readers=readers, senders=senders, kind=kind)
    _, loop = run(draw, seed, gives=0.4, loses=loses)
    assert collected(loop) == numbers_expected(LOOKS, 0, doubled=senders > 0)


@given(SEEDS)
@settings(max_examples=examples(20))
@pytest.mark.slow
def test_the_file_of_a_block_is_in_its_order_whichever_slot_took_which_part(seed):
    text = some_lines(40)
    with TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "in").mkdir()
        (home / "in" / "0.txt").write_text(text)
        aged(home / "in" / "0.txt")
        run(lines_through_filter(home, readers=3), seed, gives=0.4, loses=0.3, path=str(home / "app"))
        files = sorted((home / "out").iterdir(), key=lambda path: int(path.name, 16))
        written = "".join(path.read_text() for path in files)
    assert written == "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
