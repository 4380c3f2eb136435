"""Each number is written once, however the work is split, on every backend."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from apps.count.app import Count, Counted
from dagkit.cli import main
from dagkit.ranges import OFFSET_INFINITY, OffsetRange
from dagkit.testing import Alone

HERE = str(Path(__file__).parent)
AT_ONCE = 1000


def launched(*options):
    """The lines that a launch in this folder wrote."""
    answer = CliRunner().invoke(main, ["launch", HERE, "--once", "--json", *options])
    assert answer.exit_code == 0, answer.output
    return sorted(line for path in Path("output").iterdir() for line in path.read_text().splitlines())


@pytest.mark.parametrize(
    "options",
    [["--reference"], pytest.param(["--cores", "2"], marks=[pytest.mark.slow, pytest.mark.spark, pytest.mark.trial])],
)
def test_each_name_is_counted_as_far_as_it_should(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert launched(*options) == ["x 0", "x 1", "x 2", "y 0", "y 1", "y 2", "y 3", "y 4"]


def test_a_launch_with_further_names_counts_those_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    launched("--reference")
    items = json.dumps([["x", 3], ["y", 5], ["z", 2]])
    assert launched("--reference", "-D", f"dt.operator.Pairs.prop.items={items}")[-2:] == ["z 0", "z 1"]
    assert len(launched("--reference")) == 3 + 5 + 2


@pytest.mark.parametrize("split_after", range(4))
@pytest.mark.parametrize("split_at", [1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 2 * AT_ONCE + 10, None])
def test_a_split_anywhere_loses_and_doubles_nothing(split_after, split_at):
    alone, whole = Alone(Count(at_once=AT_ONCE)), 2 * AT_ONCE + 11
    residual = alone.work(("x", whole), split_after=split_after, split_at=split_at)
    if residual is not None:
        alone.work(("x", whole), residual)
    assert alone.sent() == [Counted("x", number) for number in range(whole)]


def test_counting_for_ever_is_stopped_and_goes_on():
    alone, residual = Alone(Count(at_once=AT_ONCE)), OffsetRange(0, OFFSET_INFINITY)
    for _ in range(3):
        left = alone.work(("x", None), residual, split_after=1)
        residual = left
    assert residual == OffsetRange(3 * AT_ONCE, OFFSET_INFINITY)
    assert [counted.number for counted in alone.sent()] == list(range(3 * AT_ONCE))
