"""Byte searches over whole columns: the positions of a byte, and the values that begin with a prefix.

When lines are read and filtered as columns, most of the time beside input and output is spent here. The functions call
the compiled `bytewise.c` if it is available, else numpy and Arrow. Both give the same results.
"""

from typing import TYPE_CHECKING, Any

from dagkit_operators.native.compiled import compiled

if TYPE_CHECKING:  # numpy is not loaded when only compiling
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Bytes = npt.NDArray[np.uint8]
    Places = npt.NDArray[np.integer[Any]]

# numpy and Arrow make one pass over a megabyte for each question about lines, and the megabyte has left the cache by
# the next pass. C asks all of them in one, in a third of the time; a mask between asking and dropping loses half of
# that. Without SSE2, C finds line ends at half the speed of numpy, and is not used for it. Rejected: an extension
# module, which needs a wheel for each version of Python; numba, which compiles in each worker for longer than a launch
# lasts.
FEW = 4096
"""For fewer bytes than this, a plain `flatnonzero` is faster than searching by words."""
CROWDED = 16
"""If at least one of so many bytes matches, each word needs many rounds, and `flatnonzero` is faster."""
SPARSE = 16
"""The first result buffer has room for one match in so many bytes."""
MOST_SHORT = 2**31 - 1
"""The largest length that Arrow's 32-bit offsets can address."""


def places_in(count: int) -> "np.dtype[np.integer[Any]]":
    """The integer type for positions in this many bytes."""
    import numpy as np  # noqa: PLC0415

    return np.dtype(np.int32 if count <= MOST_SHORT else np.int64)


def offsets_of(data: "Bytes", byte: int) -> "Places":
    """The start of each piece that ends with `byte`, and the end of the last piece: one offset more than pieces."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    kind, library, room = places_in(len(data)), compiled(), len(data) // SPARSE + 1
    # C writes positions of 32 bits.
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
        # Arrow gives an address faster than numpy.
        of, into = pa.py_buffer(data), pa.py_buffer(offsets)
        found = library.ends(of.address, of.size, byte, into.address + offsets.itemsize, room)
        if found <= room:
            return offsets[: found + 1]
        room = found


def _places_by_words(data: "Bytes", byte: int) -> "npt.NDArray[np.int64]":
    """The positions of a byte, as `flatnonzero` gives them, in half the time unless lines are very short.

    Each word stands for 64 bytes. Each round takes the lowest set bit off all words that have one. Usually one round is
    enough.
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
    """A mask of the values that begin with `text`. No value may be empty or null."""
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
    """The values that begin with `text`, or with `wanted=False` those that do not. No value may be empty or null."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    library = compiled()
    # C reads offsets of 32 bits, which large arrays do not have.
    if library is None or not len(values) or not pa.types.is_binary(values.type):
        begin = begin_with(values, text)
        return values.filter(begin if wanted else pc.invert(begin))
    _, offsets, data = values.buffers()
    held = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    # Room for all values: how many are copied is known only afterwards.
    copies = pa.py_buffer(np.empty(int(held[-1]) - int(held[0]), np.uint8))
    ends = np.empty(len(held), np.int32)
    place, into = offsets.address + held.itemsize * values.offset, pa.py_buffer(ends).address
    kept = library.beginning(data.address, place, len(values), text, len(text), wanted, copies.address, into)
    written = [pa.py_buffer(ends[: kept + 1]), copies.slice(0, int(ends[kept]))]
    return pa.Array.from_buffers(pa.binary(), kept, [None, *written])
