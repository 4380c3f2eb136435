"""Duplicates are dropped within the horizon; samples are the same in every run, and by a fraction in every order."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Arrowed, Batch, OperatorContext
from dagkit.testing import Alone
from dagkit_operators import Deduplicate, Items, Record, Sample
from tests.engine.cast import Collect, Desk, arrived, chain
from tests.operators.ways import Named, alike, in_partitions, lines, of_block

BATCHES = st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=5)


@pytest.mark.slow
@given(batches=BATCHES, restarts=st.booleans())
def test_the_first_item_of_each_key_is_sent_however_items_are_batched(batches, restarts):
    one_by_one, in_batches, sent, dropped = Alone(Deduplicate()), Alone(Deduplicate()), [], []
    for batch in batches:
        with one_by_one.window(), in_batches.window():
            one_by_one.send(*batch)
            in_batches.send_batch(batch)
        sent += (items := one_by_one.sent())
        dropped += (duplicates := one_by_one.sent("duplicates"))
        assert (in_batches.sent(), in_batches.sent("duplicates")) == (items, duplicates)
        counted = {"duplicates_dropped": len(duplicates), "keys_forgotten": 0, "keys_over_limit": 0}
        assert one_by_one.metrics == in_batches.metrics == counted
        if restarts:
            one_by_one, in_batches = one_by_one.restarted(), in_batches.restarted()
    items = [item for batch in batches for item in batch]
    assert sent == list(dict.fromkeys(items))
    assert sorted(sent + dropped) == sorted(items)


def test_the_key_is_set_and_of_records_it_is_the_value():
    one, two, again = Named("a", 1), Named("b", 2), Named("c", 1)
    for key in ("size", lambda named: named.size):
        assert alike(Deduplicate(key=key), [one, two, again]) == {"output": [one, two], "duplicates": [again]}
    assert alike(Deduplicate(), [Record(1, "a"), Record(2, "a"), Record(3, "b")])["output"] == [
        Record(1, "a"),
        Record(3, "b"),
    ]


def test_the_keys_that_occurred_longest_ago_are_forgotten_beyond_the_number_of_keys():
    alone = Alone(Deduplicate(most_keys=2))
    for items, sent, forgotten in [
        ("ab", "ab", 0),
        ("aa", "", 0),
        ("c", "c", 1),  # b, since a occurred later
        ("a", "", 0),
        ("b", "b", 1),
    ]:
        with alone.window():
            alone.send(*items)
        assert "".join(alone.sent()) == sent
        counted = {"keys_forgotten": forgotten, "keys_over_limit": forgotten}
        assert alone.metrics == {"duplicates_dropped": len(items) - len(sent), **counted}
        alone = alone.restarted()


def test_memory_is_bounded_within_a_window_too():
    alone = Alone(Deduplicate(most_keys=16))
    with alone.window():
        for start in range(0, 1000, 50):
            alone.send_batch(list(range(start, start + 50)))
            assert len(alone.operator.last_seen) <= 16 + 16 // 8
    kept = list(alone.operator.last_seen)
    assert 16 <= len(kept) == 1000 - alone.metrics["keys_forgotten"]
    assert kept == list(range(1000 - len(kept), 1000))
    assert len(Alone(Deduplicate()).operator.process_batch(Batch.of([]))) == 0


def test_a_key_is_forgotten_after_so_many_windows_without_it():
    alone = Alone(Deduplicate(most_windows=2))
    sent = []
    for items in ("a", "a", "", "a", "", "", "a"):
        with alone.window():
            alone.send(*items)
        sent.append("".join(alone.sent()))
        alone = alone.restarted()
    assert sent == ["a", "", "", "a", "", "", "a"]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("pause", range(14, 19))
def test_a_horizon_of_many_windows_is_exact(pause, restarts):
    alone, sent = Alone(Deduplicate(most_windows=16)), []
    for window in range(40):
        with alone.window():
            alone.send(f"other {window}", *(["a"] if window in (3, 3 + pause) else []))
        sent += [window for item in alone.sent() if item == "a"]
        alone = alone.restarted() if restarts else alone
    assert sent == [3] if pause < 16 else [3, 3 + pause]
    assert len(alone.operator.last_seen) == 16


def test_keys_of_one_application_window_are_forgotten_together():
    alone = Alone(Deduplicate(most_windows=2), attributes={OperatorContext.APPLICATION_WINDOW_COUNT.qualified: 2})
    sent = []
    for items in ("a", "b", "a", "b", "", "", "a", "b"):
        with alone.window():
            alone.send(*items)
        sent.append("".join(alone.sent()))
        alone = alone.restarted()
    assert sent == ["a", "b", "", "", "", "", "a", "b"]


def test_known_keys_move_when_the_number_of_partitions_changes(tmp_path):
    for partitions, letters in [(1, "abcabc"), (3, "abcabcbde"), (2, "abcabcbdeedcbaf")]:
        draw = chain(Items=Items(items=tuple(letters)), Once=Deduplicate[str](), collect=Collect())
        loop = Desk(tmp_path, draw, conf=in_partitions(Once=partitions)).run()
        assert sorted(arrived(loop)) == sorted(set(letters))


ITEMS = st.lists(st.one_of(st.text(max_size=3), st.integers(), st.floats(allow_nan=False), st.none()), max_size=20)


def sampled(operator, items, *, batch):
    alone = Alone(operator)
    alone.send_batch(items) if batch else alone.send(*items)
    return alone.sent()


@pytest.mark.slow
@given(items=ITEMS, seed=st.integers(-5, 5), at=st.integers(0, 20))
def test_a_fraction_depends_on_the_item_alone(items, seed, at):
    sample = Sample(fraction=0.5, seed=seed)
    chosen = sampled(sample, items, batch=False)
    assert sampled(sample, items, batch=True) == chosen
    assert sampled(sample, items[:at], batch=True) + sampled(sample, items[at:], batch=False) == chosen
    assert sampled(sample, items[::-1], batch=True) == chosen[::-1]


def test_lines_are_chosen_as_their_text_and_as_records():
    texts = [f"line {number}" for number in range(100)]
    chosen = sampled(Sample(fraction=0.3), texts, batch=False)
    assert [record.value for record in sampled(Sample(fraction=0.3), of_block(lines(*texts)), batch=True)] == chosen
    assert sampled(Sample(fraction=0.3), Batch({"item": Arrowed(pa.array(texts))}), batch=True) == chosen


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("of", [int, str], ids=["consecutive numbers", "texts"])
def test_the_share_is_about_the_fraction(fraction, of):
    count = len(sampled(Sample(fraction=fraction), [of(number) for number in range(20_000)], batch=True))
    assert abs(count - 20_000 * fraction) <= 4 * (20_000 * fraction * (1 - fraction)) ** 0.5


def test_items_with_equal_keys_share_their_fate_and_another_seed_chooses_others():
    items = [(number % 50, number) for number in range(500)]
    kept = sampled(Sample(fraction=0.5, key=lambda pair: pair[0]), items, batch=True)
    keys = {key for key, _ in kept}
    assert 0 < len(keys) < 50
    assert kept == [item for item in items if item[0] in keys]
    items = list(range(100))
    assert sampled(Sample(fraction=0.5, seed=1), items, batch=True) != sampled(Sample(fraction=0.5), items, batch=True)


@given(batches=st.lists(st.integers(0, 7), max_size=6), every=st.integers(1, 4), restarts=st.booleans())
def test_every_nth_item_is_kept_over_batches_and_restarts(batches, every, restarts):
    alone, at, kept = Alone(Sample(every=every)), 0, []
    for number, size in enumerate(batches):
        items = range(at, at + size)
        alone.send_batch(list(items)) if number % 2 else alone.send(*items)
        at += size
        kept += alone.sent()
        alone = alone.restarted() if restarts else alone
    assert kept == list(range(at))[::every]


def test_it_needs_a_fraction_or_every_and_a_fraction_lies_between_none_and_all():
    for told in ({}, {"fraction": 0.5, "every": 2}):
        assert [fault.message for fault in Sample(**told).faults] == ["it needs a fraction, or every, and not both"]
    assert [fault.path for fault in Sample(fraction=1.5).faults] == ["fraction"]
