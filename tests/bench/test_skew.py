"""The benchmark of stragglers: its work costs what it says, and its verdicts are what was found."""

from pathlib import Path

import pytest

from bench.skew import LARGEST_RATIO, Race, page, tables
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
from dagkit import Block
from dagkit.ranges import OffsetRange


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
    assert f"{verdict}, with 7 windows and 9 splits" in page([race], 30.0, 1)
    assert "| Spark, speculation | 20.00 | 2.00 |" in page([race], 30.0, 1)
    assert ("MISSED" in "\n".join(tables([race]))) == (not race.holds)
