"""Bytes among bytes: where one stands in many, and which values begin with some; asked of many at a time.

This is most of what lines cost that are read and filtered as columns, beside reading and writing them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # whoever only compiles does not load numpy
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

FEW = 4096
"""Bytes of which it does not pay to make words."""
CROWDED = 16
"""Of so many bytes one is sought, and the words hold so much that each is looked at many times."""


def places_of(data: "npt.NDArray[np.uint8]", byte: int) -> "npt.NDArray[np.int64]":
    """Where a byte stands, in order.

    As `flatnonzero`, in half its time where lines are of some length: 64 bytes are one word, and the lowest bits
    of all words that have any are taken off at once, round by round. Mostly there is one round.
    """
    import numpy as np  # noqa: PLC0415

    there = data == byte
    if len(data) < FEW:
        return np.flatnonzero(there)
    bits = np.packbits(there, bitorder="little")
    words = np.zeros(-(-len(bits) // 8), np.dtype("<u8"))
    words.view(np.uint8)[: len(bits)] = bits
    held, one = np.flatnonzero(words != 0), np.uint64(1)
    words, starts = words[held], held * 64
    others = words & (words - one)
    lowest: npt.NDArray[np.int64] = starts + np.bitwise_count((words ^ others) - one)
    if not others.any():
        return lowest
    counts = np.bitwise_count(words)
    reached = np.cumsum(counts, dtype=np.int64)
    total = int(reached[-1])
    if total * CROWDED > len(data):
        return np.flatnonzero(there)
    places, slots = np.empty(total, np.int64), reached - counts
    places[slots] = lowest
    while len(left := np.flatnonzero(others)):
        words, starts, slots = others[left], starts[left], slots[left] + 1
        others = words & (words - one)
        places[slots] = starts + np.bitwise_count((words ^ others) - one)
    return places


def begin_with(values: "pa.BinaryArray | pa.LargeBinaryArray", text: bytes) -> "pa.BooleanArray":
    """Which of the values begin so; none of the bytes sought may be in what ends each value."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if len(text) != 1 or not len(values):
        return pc.starts_with(values, text)
    _, offsets, data = values.buffers()
    width = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    starts: npt.NDArray[Any] = np.frombuffer(offsets, width)[values.offset : values.offset + len(values)]
    bits = np.packbits(np.frombuffer(data, np.uint8).take(starts) == text[0], bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(starts), [None, pa.py_buffer(bits)])
