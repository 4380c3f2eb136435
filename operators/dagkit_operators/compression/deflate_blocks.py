"""Finding where blocks of a deflate stream begin, and starting decompression there.

Deflate blocks begin at any bit. No decompressor that Python offers starts in the middle of a byte; but some empty
blocks, whose total length in bits is right, can be put before the block. They produce nothing, and what follows them
begins at the wanted bit. RFC 1951 describes the format.
"""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_LENGTHS_ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1)
"""The order of the code length codes in a block header, up to the last one that is used here."""
LOOKAHEAD = 24
"""Bytes that `block_starts` needs after those that it searches."""


def aligned(data: bytes, bit: int) -> bytes:
    """A deflate stream that continues with the block which starts at a bit (0 to 7) of the first byte of `data`."""
    empty, used = _empty_blocks(bit)
    if not used:
        return empty + data
    return empty[:-1] + bytes([empty[-1] | (data[0] >> used << used)]) + data[1:]


@cache
def _empty_blocks(bit: int) -> tuple[bytes, int]:
    """Empty blocks whose last byte has `bit` bits in use, and this number."""
    bits = _empty_dynamic() if bit % 2 else []
    while len(bits) % 8 != bit:
        bits += [0, 1, 0] + [0] * 7  # not the last block, fixed codes, the code for its end: ten bits
    number = sum(value << place for place, value in enumerate(bits))
    return number.to_bytes(-(-len(bits) // 8), "little"), bit


def _empty_dynamic() -> list[int]:
    """An empty block with codes of its own: an odd number of bits.

    Its two literal codes are byte 0 and the end of the block, one bit each. The lengths of codes are written with two
    symbols of one bit each: 1 for a length of one, and 18 for a run of up to 138 zeros.
    """

    def number(value: int, width: int) -> list[int]:
        return [value >> place & 1 for place in range(width)]

    bits = [0, *number(2, 2), *number(0, 5), *number(0, 5), *number(len(_LENGTHS_ORDER) - 4, 4)]
    for symbol in _LENGTHS_ORDER:
        bits += number(1 if symbol in (1, 18) else 0, 3)
    one, zeros = [0], [1]
    bits += one + zeros + number(138 - 11, 7) + zeros + number(117 - 11, 7) + one  # bytes 0 to 255, and the end
    return [*bits, *one, 1]  # one distance code, which is not used, and the end of the block


def block_starts(data: bytes, count: int) -> Iterator[int]:
    """The bits in the first `count` bytes at which a block with codes of its own may begin, in order.

    About 30 of 10,000 bits look like such a beginning by chance: only decompression shows which are right. The last
    block of a stream is not found. `data` has LOOKAHEAD more bytes.
    """
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    assert len(data) >= count + LOOKAHEAD, "a header may extend beyond the bytes that are searched"
    words = np.ndarray((count + 8,), "<u8", data, 0, (1,))  # eight bytes from each byte on
    sums = _kraft_sums()
    found = []
    for shift in range(8):
        first = words[:count] >> np.uint64(shift)
        head = first.astype(np.uint16)
        # not the last block, codes of its own; at most 286 literal codes and 30 distance codes
        at = np.flatnonzero(((head & 7) == 4) & ((head & 0xF8) < 0xF0) & ((head & 0x1F00) < 0x1E00))
        first, second = first[at], words[at + 7] >> np.uint64(shift)
        bits = (((first >> np.uint64(13)) & np.uint64(15)) + np.uint64(4)) * np.uint64(3)
        # 13 lengths of three bits in one word, the others in the next
        low = (first >> np.uint64(17)) & _ones(np.minimum(bits, np.uint64(39)))
        high = second & _ones(np.maximum(bits, np.uint64(39)) - np.uint64(39))
        total = sum(
            sums[(part >> np.uint64(place)) & np.uint64(4095)] for part in (low, high) for place in (0, 12, 24, 36)
        )
        found.append(at[total == 128] * 8 + shift)
    yield from np.sort(np.concatenate(found)).tolist()


def _ones(count: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    import numpy as np  # noqa: PLC0415 - see above

    return (np.uint64(1) << count) - np.uint64(1)


@cache
def _kraft_sums() -> "np.ndarray[Any, Any]":
    """How much of all codes four lengths of three bits each use, in 128ths. A complete set uses all."""
    import numpy as np  # noqa: PLC0415 - see above

    used = [0, *(128 >> length for length in range(1, 8))]
    return np.array([sum(used[four >> place & 7] for place in (0, 3, 6, 9)) for four in range(4096)], np.int32)
