"""Stop anywhere, resume, same output: whatever step of whatever window a run ends at, and however often."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit import Block, InputOperator, OutputPort, State
from dagkit.engine.program.points import Point
from dagkit.ledger.audit.verify import verify
from dagkit.ranges import OFFSET_INFINITY
from dagkit.testing.crashes import Crash, CrashAfter
from tests.engine.cast import (
    Collect,
    Desk,
    Digits,
    Hurried,
    InPairs,
    arrived,
    chain,
    numbers_collected,
    reference,
    with_lines,
)
from tests.examples import examples

WINDOWS = 3


def kept_lines(desk: Desk) -> list[str]:
    """What a person would keep of the input, in the order of the files."""
    texts = [path.read_text() for path in sorted((desk.home / "in").iterdir())]
    return [line for text in texts for line in text.splitlines() if not line.startswith("#")]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    desk = with_lines(tmp_path_factory.mktemp("undisturbed"))
    assert desk.run().checkpoint.window == WINDOWS
    assert desk.text().splitlines() == kept_lines(desk)
    return desk.outputs()


@pytest.mark.gate(20)
@pytest.mark.parametrize("window", range(1, WINDOWS + 1))
@pytest.mark.parametrize("point", Point)
def test_a_crash_after_any_step_of_any_window_changes_nothing(tmp_path, undisturbed, point, window):
    desk = with_lines(tmp_path)
    assert desk.crash(CrashAfter(point, window)) == 1
    desk.run()
    assert (desk.outputs(), desk.troubles()) == (undisturbed, [])


@pytest.mark.gate(20)
@pytest.mark.parametrize("second", Point)
@pytest.mark.parametrize("first", Point)
def test_a_crash_while_a_crash_is_repaired_changes_nothing(tmp_path, undisturbed, first, second):
    desk = with_lines(tmp_path)
    assert desk.crash(CrashAfter(first, 2), CrashAfter(second)) == 2
    desk.run()
    assert (desk.outputs(), desk.troubles()) == (undisturbed, [])


@pytest.mark.parametrize("point", [Point.PLANNED, Point.RUNNING, Point.STAGED])
def test_a_window_that_was_promised_runs_again_with_the_same_blocks_and_the_same_allocation(tmp_path, point):
    desk = with_lines(tmp_path)
    assert desk.crash(CrashAfter(point, 1)) == 1
    promised = desk.loop().run_state.journal.promised()
    desk.crash(CrashAfter(Point.RUNNING, 1))
    assert desk.loop().run_state.journal.promised() == promised
    assert promised is not None
    (allocation,) = promised[0].deal.values()
    assert [len(hand) for hand in allocation] == [2, 1]


@pytest.mark.parametrize("point", Point)
def test_a_crash_with_two_windows_in_flight_changes_nothing(tmp_path, undisturbed, point):
    desk = with_lines(tmp_path)
    others: list[set[int]] = []

    def probe(at: Point, window_id: int) -> None:
        others.append({flight.window_id for flight in loop.run_state.in_flight} | {window_id})
        CrashAfter(point, 2)(at, window_id)

    desk.backend = InPairs
    loop = desk.loop(probe=probe)
    with pytest.raises(Crash, match=f"after {point} of window 2"):
        loop.run()
    assert max(map(len, others)) == 2
    desk.backend = reference
    desk.run()
    assert (desk.outputs(), desk.troubles()) == (undisturbed, [])


class Endless(InputOperator):
    """Finds one source that has no end."""

    blocks = OutputPort(Block)
    found = State[bool](False)

    def emit_tuples(self) -> None:
        if not self.found:
            self.blocks.emit(Block(0, "numbers", 0, OFFSET_INFINITY))
        self.found = True


def test_a_source_without_an_end_is_read_window_by_window(tmp_path):
    draw = chain(endless=Endless(), digits=Digits(waits_every=4), collect=Collect())
    desk = Desk(tmp_path, draw, backend=Hurried)
    desk.run(windows=2)
    desk.crash(CrashAfter(Point.STAGED, 3))
    came = arrived(desk.run(windows=2))
    assert came == list(range(len(came)))
    assert 4 <= len(came) <= 16, "four windows, each over as soon as it has begun, and after four claims at the latest"
    assert [fault.code for fault in verify(desk.ledger()).faults] == ["bytes-unread"]


crashes = st.lists(st.builds(CrashAfter, st.sampled_from(list(Point)), st.integers(1, 6)), max_size=3)


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(
    looks=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=5).map(tuple), max_size=4).map(tuple),
    readers=st.integers(1, 3),
    waits_every=st.integers(1, 5),
    probes=crashes,
)
def test_every_position_is_read_once_however_short_the_windows_are(
    *, tmp_path_factory, looks, readers, waits_every, probes
):
    draw = numbers_collected(looks, readers=readers, waits_every=waits_every)
    desk = Desk(tmp_path_factory.mktemp("short"), draw, backend=Hurried)
    desk.crash(*probes)
    assert sorted(arrived(desk.run())) == list(range(sum(map(sum, looks))))
    assert desk.faults() == []


@pytest.mark.slow
@settings(max_examples=examples(16))
@given(
    st.fixed_dictionaries(
        {
            "block_size": st.integers(20, 200),
            "readers": st.integers(1, 4),
            "fused": st.booleans(),
            "chunk": st.integers(8, 64),
        }
    ),
    crashes,
)
def test_every_line_is_written_once_however_blocks_are_cut(tmp_path_factory, given, probes):
    desk = with_lines(tmp_path_factory.mktemp("cut"), **given)
    desk.backend = Hurried
    desk.crash(*probes)
    desk.run()
    assert (desk.text().splitlines(), desk.troubles()) == (kept_lines(desk), [])
