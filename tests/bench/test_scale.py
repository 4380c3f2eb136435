"""The benchmarks of scaling and of stragglers: work comes and costs as they say, and verdicts are what was found."""

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from bench.scaling.imagined import Imagined
from bench.scaling.phases import Changed, Coming, Phases, Watch, is_wanted
from bench.scaling.report import Real, holds, page, real_lines, simulated_lines
from bench.skew import LARGEST_RATIO, Race, tables
from bench.skew import page as page_of_stragglers
from bench.skewing.contestants import CONTESTANTS, WholeReader, written
from bench.skewing.work import (
    DEAR_STRETCH,
    LINES,
    SKEWS,
    SLOW_BLOCK,
    WIDTH,
    Skew,
    Work,
    burning,
    digest_of,
    every_other_line,
)
from dagkit import Block, Shutdown
from dagkit.engine.program.facts import Scaled
from dagkit.engine.record.run_events import Committed, Found, Reshaped
from dagkit.ranges import OffsetRange
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
    return Committed(1, 1.0, {"byte": positions}, 0, 0)


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


def small(skew: Skew, tmp_path: Path) -> Work:
    source = tmp_path / "lines.txt"
    skew.write(source, 160)
    return Work.of(skew, source, 2, 1)


def units_of(skew: Skew) -> list[int]:
    return [int(line.split(" ")[0]) for line in skew.lines()]


def test_the_hundredth_part_of_the_lines_cost_a_hundred_times_more_and_stand_together():
    units = units_of(DEAR_STRETCH)
    dear = [number for number, each in enumerate(units) if each > 1]
    assert len(units) == LINES
    assert dear == list(range(dear[0], dear[0] + LINES // 100))
    assert {units[number] for number in dear} == {100}
    assert sum(units) == DEAR_STRETCH.units_together


def test_one_block_costs_as_much_as_all_others_together():
    units, length = units_of(SLOW_BLOCK), LINES // SLOW_BLOCK.blocks
    costs = [sum(units[first : first + length]) for first in range(0, LINES, length)]
    assert max(costs) == sum(costs) - max(costs) == sum(units) / 2
    assert sum(units) == SLOW_BLOCK.units_together


@pytest.mark.parametrize("skew", SKEWS, ids=[skew.name for skew in SKEWS])
def test_every_line_is_as_long_as_any_other_so_that_blocks_are_lines(skew, tmp_path):
    work = small(skew, tmp_path)
    assert work.source.stat().st_size == 160 * WIDTH
    assert work.block_size == 160 * WIDTH // skew.blocks


def test_what_slots_make_adds_up_to_the_same_in_any_order(tmp_path):
    work = small(DEAR_STRETCH, tmp_path)
    shares = [every_other_line(work.source, slot, 2, 1) for slot in range(2)]
    burn = burning(1)
    lines = [burn(line).encode() for line in work.source.read_text().splitlines()]
    assert sum(count for _, count, _ in shares) == len(lines) == digest_of(reversed(lines))[0]
    assert sum(total for *_, total in shares) & 0xFFFFFFFF == digest_of(lines)[1]


def test_what_a_contestant_wrote_is_found_without_what_others_put_beside_it(tmp_path):
    (tmp_path / "part-0").write_text("one\n")
    (tmp_path / "_SUCCESS").write_text("two\n")
    (tmp_path / ".part-0.crc").write_text("three\n")
    assert list(written(tmp_path)) == [b"one\n"]


def test_a_reader_without_splits_gives_nothing_away():
    tracker = WholeReader().tracker(Block(0, "a", 0, 100), OffsetRange(0, 100))
    assert tracker.try_claim(0)
    assert tracker.try_split(0.0) is None


def race_of(dagkit: float, tmp_path: Path) -> Race:
    work = small(DEAR_STRETCH, tmp_path)
    seconds = {each.name: [dagkit if each.splits else 20.0] for each in CONTESTANTS}
    return Race(DEAR_STRETCH, work, (160, 1), [10.0], seconds, windows=7, splits=9)


@pytest.mark.parametrize(("dagkit", "verdict"), [(11.4, "This holds"), (11.6, "This falls short")])
def test_what_takes_too_long_is_said_to(dagkit, verdict, tmp_path):
    race = race_of(dagkit, tmp_path)
    assert race.holds == (dagkit / 10 <= LARGEST_RATIO)
    assert f"{verdict}, with 7 windows and 9 splits" in page_of_stragglers([race], 30.0, 1)
    assert "| Spark, speculation | 20.00 | 2.00 |" in page_of_stragglers([race], 30.0, 1)
    assert ("MISSED" in "\n".join(tables([race]))) == (not race.holds)
