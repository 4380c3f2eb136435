"""A window restores the keys that it touches, and those that are due, of however many are kept."""

from datetime import UTC, datetime, timedelta
from operator import itemgetter

import pytest

from dagkit.testing import Alone
from dagkit_operators import AggregateByTime, Deduplicate, Join, OuterJoin, TumblingWindows

START = datetime(1970, 1, 1, tzinfo=UTC)
KEY, TIME, OF = map(itemgetter, range(3))
ALL = "abcdefghij"


def restored(state):
    """The keys that were restored since the last window."""
    return sorted(state._values)


@pytest.mark.parametrize("kind", [Join, OuterJoin])
def test_a_join_restores_the_keys_of_new_items_and_those_that_are_over(kind):
    alone = Alone(kind(most_windows=3))
    with alone.window():
        alone.send(*((key, 1) for key in "ab"), to="left")
    alone = alone.restarted()
    with alone.window():
        alone.send(*((key, 1) for key in ALL[2:]), to="left")
        alone.send(("z", 1), to="right")
    alone = alone.restarted()
    with alone.window():
        alone.send(("e", 2), to="right")
    assert ("e", 1) in [left for left, _ in alone.sent()]
    assert restored(alone.operator.lefts) == ["e"], "of which a and b were over, and are forgotten"
    assert restored(alone.operator.rights) == ["e"]
    assert alone.metrics["items_kept"] == 10
    assert alone.metrics["unpaired_forgotten"] == (2 if kind is Join else 0)


def test_an_aggregate_restores_the_keys_of_new_items_and_those_with_an_end():
    def after(second, *items):
        alone = kept.restarted(watermark=START + timedelta(seconds=second))
        with alone.window():
            alone.send(*items)
        return alone, [(one.key, one.result, one.revision) for one in alone.sent()]

    late = {"allowed_lateness_millis": 10_000}
    kept = Alone(AggregateByTime(key=KEY, time=TIME, of=OF, windows=TumblingWindows(millis=10_000), **late))
    kept, _ = after(0, *((key, 5 if key < "c" else 15, 1) for key in ALL))
    kept, sent = after(8, ("d", 12, 1))
    assert (restored(kept.operator.open_windows), sent) == (["d"], [])
    kept, sent = after(12, ("e", 13, 1))
    assert (restored(kept.operator.open_windows), sent) == (["a", "b", "e"], [("a", 1, 0), ("b", 1, 0)])
    kept, sent = after(13)
    assert (restored(kept.operator.open_windows), sent) == ([], []), "what was sent waits for late records"
    kept, sent = after(14, ("b", 6, 1))
    assert (restored(kept.operator.open_windows), sent) == (["b"], [("b", 2, 1)])
    kept, sent = after(20)
    assert "a" not in kept.operator.open_windows
    assert [key for key, *_ in sent] == [*"cdefghij"]


def test_deduplication_restores_the_keys_of_new_items_and_those_that_are_over():
    alone = Alone(Deduplicate(most_windows=2))
    for items in (ALL[:2], ALL[2:]):
        with alone.window():
            alone.send(*items)
        alone = alone.restarted()
    with alone.window():
        alone.send("d", "x")
    assert restored(alone.operator.last_seen) == ["d", "x"]
    assert alone.metrics == {"duplicates_dropped": 1, "keys_forgotten": 2, "keys_over_limit": 0}
