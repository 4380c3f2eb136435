"""Bytes among bytes: the quick ways tell what the plain ones do."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit_operators.bytewise import CROWDED, FEW, begin_with, places_of


@pytest.mark.parametrize("length", [0, 1, 7, 63, 64, 65, FEW - 1, FEW, FEW + 1, FEW + 63, FEW + 64, 100_000])
@pytest.mark.parametrize("apart", [1, 2, CROWDED - 1, CROWDED, CROWDED + 1, 40, 63, 64, 65, 97, 1000, 10**6])
def test_a_byte_is_found_wherever_it_stands(length: int, apart: int) -> None:
    data = np.full(length, ord("x"), np.uint8)
    for shift in (0, 1, apart // 2):
        data[:] = ord("x")
        data[shift::apart] = ord("\n")
        assert places_of(data, ord("\n")).tolist() == list(range(shift, length, apart))


@given(seed=st.integers(0, 2**32 - 1), share=st.floats(0, 0.2), length=st.integers(0, 3 * FEW))
def test_bytes_are_found_as_flatnonzero_finds_them(seed: int, share: float, length: int) -> None:
    data = (np.random.default_rng(seed).random(length) < share).astype(np.uint8)
    assert (places_of(data, 1) == np.flatnonzero(data == 1)).all()
    assert len(places_of(data, 1)) == data.sum()


def test_words_that_hold_many_are_emptied_beside_those_that_hold_none() -> None:
    data = np.zeros(2 * FEW, np.uint8)
    data[1000:1130] = data[FEW] = data[-1] = 1
    assert places_of(data, 1).tolist() == [*range(1000, 1130), FEW, 2 * FEW - 1]


@given(
    lines=st.lists(st.binary(max_size=4).map(lambda line: line.replace(b"\n", b".") + b"\n"), max_size=20),
    text=st.sampled_from([b".", b"..", b"\x00", b"", b"abc"]),
    start=st.integers(0, 20),
    kind=st.sampled_from([pa.binary(), pa.large_binary()]),
)
def test_values_begin_as_arrow_says(lines: list[bytes], text: bytes, start: int, kind: pa.DataType) -> None:
    values = pa.array(lines, kind).slice(start)
    assert begin_with(values, text).to_pylist() == pc.starts_with(values, text).to_pylist()
