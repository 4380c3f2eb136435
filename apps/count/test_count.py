"""Each number is written once, however the work is split, on every backend."""

import json
from pathlib import Path

import pytest

from apps.count.app import Count, Counted
from dagkit.ranges import OFFSET_INFINITY, OffsetRange
from dagkit.testing import Alone
from tests.applications import launched, on_each_backend, written

HERE = str(Path(__file__).parent)
AT_ONCE = 1000


@on_each_backend
def test_each_name_is_counted_as_far_as_it_should(backend, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    launched(HERE, backend)
    assert sorted(written()) == ["x 0", "x 1", "x 2", "y 0", "y 1", "y 2", "y 3", "y 4"]
    for _ in range(2):  # a launch with further names counts those alone
        launched(HERE, backend, Pairs__items=json.dumps([["x", 3], ["y", 5], ["z", 2]]))
        assert sorted(written())[8:] == ["z 0", "z 1"]


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
