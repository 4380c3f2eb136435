"""A sample is the same in every run; by a fraction, it is the same for every order, split and partition, too."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Arrowed, Batch
from dagkit.testing import Alone
from dagkit_operators import Sample
from tests.operators.ways import lines, of_block

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
