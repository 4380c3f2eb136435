"""The benchmark of scaling: its phases come when they should, and its verdicts are what was found."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from bench.scaling.imagined import Imagined
from bench.scaling.phases import Changed, Coming, Phases, Watch, is_wanted
from bench.scaling.report import Real, holds, page, real_lines, simulated_lines
from dagkit import Shutdown
from dagkit.engine.program.facts import Scaled
from dagkit.engine.record.run_events import Committed, Found, Reshaped
from dagkit.testing import Alone, FakeClock
from tests.cases import cases


def _coming(clock: FakeClock) -> Alone:
    coming = Coming(path="text", blocks=5, block_size=10, silence_millis=1000, trickle=2, every_millis=500)
    return Alone(coming, now=clock.now)


def test_a_burst_silence_and_a_trickle_come_by_the_clock():
    clock = FakeClock()
    coming = _coming(clock)
    seen = []
    for _ in range(5):
        coming.look()
        seen.append([block.start for block in coming.sent()])
        clock.advance(millis=400)
    assert seen == [[0, 10, 20, 30, 40], [], [], [50], [60]]


def test_a_look_too_early_reports_when_to_look_again_and_an_input_that_has_found_all_says_so():
    clock = FakeClock()
    coming = _coming(clock)
    for millis, again in ((0, 1000), (1200, 300)):
        clock.advance(millis=millis)
        coming.look()
        assert coming.operator.looks_again_in_millis() == again
    clock.advance(seconds=60)
    coming.look()
    with pytest.raises(Shutdown):
        coming.operator.emit_tuples()


def test_no_line_is_wanted():
    assert not any(map(is_wanted, ("", "a", ".b", "ä" * 99)))


def _committed(positions: int) -> Committed:
    return Committed(1, 1.0, positions, 0, 0)


def _scaled(before: int, after: int) -> Reshaped:
    fact = Scaled(
        operator="Reader", at=datetime(2030, 1, 1, tzinfo=UTC), before=before, after=after, policy="drain", rule=""
    )
    return Reshaped(1, fact)


def test_a_burst_is_drained_when_all_that_was_found_was_read():
    watch = Watch()
    for happening in (Found("Coming", 2, 20, 0), _committed(10), _committed(10), Found("Coming", 1, 10, 0)):
        watch(happening)
    assert (len(watch.drained), watch.windows, watch.positions) == (1, 2, 20)


def test_changes_are_seen_and_looks_that_changed_nothing_are_not():
    watch = Watch()
    for happening in (Found("Coming", 1, 9, 0), _scaled(1, 2), _scaled(2, 2), _committed(9), _scaled(2, 1)):
        watch(happening)
    assert [(change.windows, change.before, change.after) for change in watch.changes] == [(0, 1, 2), (1, 2, 1)]


@pytest.mark.parametrize(("counts", "turns"), [([1, 2, 4, 1], 1), ([1, 2, 1, 2], 2), ([4, 2, 1], 0), ([1], 0)], ids=str)
def test_turns(counts, turns):
    changes = [Changed(at, 0, before, after, "") for at, (before, after) in enumerate(pairwise(counts))]
    assert Watch(changes=changes).turns(0, 10) == turns


def _real(drain: float, *, turns: int = 1, windows: int | None = 0) -> Real:
    fixed = {1: [2000.0], 2: [700.0, 710.0, 690.0]}
    pairs = [(1000.0, drain), (500.0, drain / 2), (2000.0, 9 * drain)]
    return Real(fixed, [drain], drain_turns=turns, windows_until_all_cores=windows, pairs=pairs)


IMAGINED = Imagined("a world", 2, 2, 1.0, 2.0, 1.0, 1.0, 1, 3.0, 1)


@cases(
    "real, kept",
    ("within the bound", _real(1100), True),
    ("too slow", _real(1101), False),
    ("it flaps", _real(1000, turns=2), False),
    ("every core comes too late", _real(1000, windows=3), False),
    ("some core never has a partition", _real(1000, windows=None), False),
)
def test_what_must_hold_on_spark(real, kept):
    assert real.holds is kept
    assert real.best == 2
    real.apex = [1500.0]
    assert ("MISSED" in list(real_lines(real))[-1]) is not kept
    assert ("This holds." in page(Phases(), real, [IMAGINED])) is kept


@pytest.mark.parametrize(
    ("over", "turns", "kept"), [(1.1, 1, True), (1.11, 1, False), (1.0, 2, False)], ids=["well", "too slow", "it flaps"]
)
def test_what_must_hold_in_a_simulation(over, turns, kept):
    each = Imagined("a world", 2, 2, 1.0, 2.0, over, over, turns, 3.0, 1)
    assert holds(each) is kept
    assert ("MISSED" in list(simulated_lines([each]))[-1]) is not kept
