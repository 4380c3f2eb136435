"""Bytes among bytes: where one stands in many, and which values begin with some; asked of many at a time.

This is most of what lines cost that are read and filtered as columns, beside reading and writing them. Where it was
compiled, that is asked (`bytewise.c`), else numpy and Arrow are; they say the same.
"""

from typing import TYPE_CHECKING, Any

from dagkit_operators.compiled import compiled

if TYPE_CHECKING:  # whoever only compiles does not load numpy
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Bytes = npt.NDArray[np.uint8]
    Places = npt.NDArray[np.integer[Any]]

FEW = 4096
"""Bytes of which it does not pay to make words."""
CROWDED = 16
"""If one of so many bytes is sought, the words hold so much that each is looked at many times."""
SPARSE = 16
"""If no more than one of so many bytes is sought, there is room for all places at once."""
MOST_SHORT = 2**31 - 1
"""Bytes that 32 bits can count, which is how Arrow has them up to here."""


def places_in(count: int) -> "np.dtype[np.integer[Any]]":
    """What places among so many bytes are kept in."""
    import numpy as np  # noqa: PLC0415

    return np.dtype(np.int32 if count <= MOST_SHORT else np.int64)


def offsets_of(data: "Bytes", byte: int) -> "Places":
    """Where the pieces begin that a byte ends, and what is behind the last of them: one more than there are pieces."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    kind, library, room = places_in(len(data)), compiled(), len(data) // SPARSE + 1
    if library is None or library.ends is None or kind != np.int32:
        places = _places_by_words(data, byte)
        offsets = np.empty(len(places) + 1, kind)
        offsets[1:] = places
        offsets += 1
        offsets[0] = 0
        return offsets
    while True:
        offsets = np.empty(room + 1, kind)
        offsets[0] = 0
        of, into = pa.py_buffer(data), pa.py_buffer(offsets)  # their way to an address is shorter than numpy's
        found = library.ends(of.address, of.size, byte, into.address + offsets.itemsize, room)
        if found <= room:
            return offsets[: found + 1]
        room = found


def _places_by_words(data: "Bytes", byte: int) -> "npt.NDArray[np.int64]":
    """Where a byte stands: as `flatnonzero`, in half its time where lines are of some length.

    64 bytes are one word, and the lowest bits of all words that have any are taken off at once, round by round. Mostly
    there is one round.
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
    """Which of the values begin so; none of them is empty, or null."""
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


def kept_by_beginning(values: "pa.BinaryArray | pa.LargeBinaryArray", text: bytes, *, wanted: bool) -> "pa.Array":
    """The values that begin so, or those that do not, one after the other; none of them is empty, or null."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    library = compiled()
    if library is None or not len(values) or not pa.types.is_binary(values.type):
        begin = begin_with(values, text)
        return values.filter(begin if wanted else pc.invert(begin))
    _, offsets, data = values.buffers()
    held = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    copies = pa.py_buffer(np.empty(int(held[-1]) - int(held[0]), np.uint8))
    ends = np.empty(len(held), np.int32)
    place, into = offsets.address + held.itemsize * values.offset, pa.py_buffer(ends).address
    kept = library.beginning(data.address, place, len(values), text, len(text), wanted, copies.address, into)
    written = [pa.py_buffer(ends[: kept + 1]), copies.slice(0, int(ends[kept]))]
    return pa.Array.from_buffers(pa.binary(), kept, [None, *written])
