"""Byte scanning: compiled C and numpy give what the plain ways give."""

import ctypes
import mmap
import pickle
import platform
import sys
import zlib
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit_operators.native import bytewise
from dagkit_operators.native.bytewise import CROWDED, FEW, SPARSE, begin_with, kept_by_beginning, offsets_of
from dagkit_operators.native.compiled import LIBRARY, SOURCE, compiled
from hatch_build import MISSING, can_compile, compile_library

WAYS = ["compiled", "compiled without SSE2", "numpy"]
compiling = pytest.mark.skipif(not can_compile(), reason=MISSING)


@pytest.fixture(scope="module", params=[pytest.param(way, marks=[] if way == "numpy" else compiling) for way in WAYS])
def _way(request, tmp_path_factory):
    """Each way by itself, whichever is used where dagkit is installed."""
    found = None
    if request.param != "numpy":
        library = tmp_path_factory.mktemp("compiled") / LIBRARY.name
        assert compile_library(SOURCE, library, ["-U__SSE2__"] if "without" in request.param else []) is None
        found = compiled(library)
        assert found.ends is None or "without" not in request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bytewise, "compiled", lambda: found)
        yield


def places_of(data: npt.NDArray[np.uint8], byte: int) -> npt.NDArray[np.int32]:
    """The positions of a byte, computed from the pieces that it ends."""
    offsets = offsets_of(data, byte)
    assert (offsets.dtype, offsets[0]) == (np.int32, 0)
    return offsets[1:] - 1


every_way = pytest.mark.usefixtures("_way")


LENGTHS = (0, 1, 7, 63, 64, 65, FEW - 1, FEW, FEW + 1, FEW + 63, FEW + 64, 100_000)
DISTANCES = (1, 2, CROWDED - 1, CROWDED, CROWDED + 1, 40, 63, 64, 65, 97, 1000, 10**6)


@every_way
def test_a_byte_is_found_wherever_it_stands():
    for length, apart in product(LENGTHS, DISTANCES):
        data = np.empty(length, np.uint8)
        for shift in (0, 1, apart // 2):
            data[:] = ord("x")
            data[shift::apart] = ord("\n")
            expected = list(range(shift, length, apart))
            assert places_of(data, ord("\n")).tolist() == expected, f"{length} bytes, one in {apart} from {shift}"


@every_way
@given(
    data=st.binary(max_size=300) | st.binary(min_size=FEW, max_size=3 * FEW),
    byte=st.integers(0, 255),
    start=st.integers(0, 64),
)
def test_any_byte_is_found_among_any_others(data, byte, start):
    held = np.frombuffer(data, np.uint8)[start:]
    assert places_of(held, byte).tolist() == [place for place, one in enumerate(data[start:]) if one == byte]


@every_way
def test_words_that_hold_many_are_emptied_beside_those_that_hold_none():
    data = np.zeros(2 * FEW, np.uint8)
    data[1000:1130] = data[FEW] = data[-1] = 1
    assert places_of(data, 1).tolist() == [*range(1000, 1130), FEW, 2 * FEW - 1]
    for found in (7, 8, 9):  # places that there was no room for are found again
        data = np.zeros(7 * SPARSE, np.uint8)
        data[:found] = 1
        assert places_of(data, 1).tolist() == list(range(found))


lines = st.lists(st.binary(max_size=4).map(lambda line: line.replace(b"\n", b".") + b"\n"), max_size=40)
texts = st.sampled_from([b".", b"..", b"\x00", b"\x00.", b"", b"abc", b"\n", b".\n", b"longer than any line"])
kinds = st.sampled_from([pa.binary(), pa.large_binary()])
spans = st.builds(slice, st.integers(-40, 40), st.integers(-40, 40))


@given(lines=lines, text=texts, start=st.integers(0, 20), kind=kinds)
def test_values_begin_as_arrow_says(lines, text, start, kind):
    values = pa.array(lines, kind).slice(start)
    assert begin_with(values, text).to_pylist() == pc.starts_with(values, text).to_pylist()


@every_way
@given(lines=lines, text=texts, span=spans, kind=kinds)
def test_those_are_kept_that_begin_so_or_that_do_not(lines, text, span, kind):
    values = pa.array(lines, kind)[span]
    for wanted in (True, False):
        kept = kept_by_beginning(values, text, wanted=wanted)
        kept.validate(full=True)
        expected = [line for line in lines[span] if line.startswith(text) == wanted]
        assert (kept.type, kept.to_pylist()) == (kind, expected)
        assert len(pickle.dumps(kept)) < 1000, "nothing travels that was not kept"


@pytest.fixture
def page():
    """A page of memory followed by none: reading beyond it ends the process."""
    libc = ctypes.CDLL(None, use_errno=True)
    with mmap.mmap(-1, 2 * mmap.PAGESIZE) as memory:
        behind = ctypes.addressof(held := ctypes.c_char.from_buffer(memory)) + mmap.PAGESIZE
        assert libc.mprotect(ctypes.c_void_p(behind), mmap.PAGESIZE, 0) == 0
        yield memory
        assert libc.mprotect(ctypes.c_void_p(behind), mmap.PAGESIZE, 3) == 0
        del held


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected as Linux does")
@every_way
@pytest.mark.parametrize("length", [1, 15, 16, 63, 64, 65, 127, 128, 1000])
def test_nothing_is_read_behind_what_is_given(page, length):
    page[mmap.PAGESIZE - length : mmap.PAGESIZE] = b"." * (length - 1) + b"\n"
    data = np.frombuffer(page, np.uint8, length, mmap.PAGESIZE - length)
    assert places_of(data, ord("\n")).tolist() == [length - 1]
    offsets = pa.array([0, length], pa.int32()).buffers()[1]
    values = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(data)])
    for text in (b".", b"..", b"." * (length - 1) + b"\n.", b"\n"):
        wanted = (b"." * (length - 1) + b"\n").startswith(text)
        assert len(kept_by_beginning(values, text, wanted=True)) == wanted
    del data, values


@compiling
@pytest.mark.parametrize("room", [0, 1, 5, 64, 100])
def test_nothing_is_written_where_there_is_no_room(room):
    library = compiled()
    if library.ends is None:
        assert platform.machine() != "x86_64", "it has SSE2"
        return
    data, ends = np.full(200, 7, np.uint8), np.full(200, -1, np.int32)
    assert library.ends(data.ctypes.data, len(data), 7, ends.ctypes.data, room) == len(data)
    assert ends.tolist() == [*range(1, room + 1), *[-1] * (200 - room)]


@compiling
@pytest.mark.parametrize("wanted", [True, False])
def test_what_is_kept_is_written_into_no_more_than_its_own_memory(page, wanted):
    lines = [b".a\n", b"b\n", b"\n", b".\n", b"cc\n"] * 20
    values = pa.array(lines, pa.binary())
    kept = b"".join(line for line in lines if line.startswith(b".") == wanted)
    _, offsets, data = values.buffers()
    into = ctypes.addressof(ctypes.c_char.from_buffer(page)) + mmap.PAGESIZE - len(kept)
    copied = np.full(len(lines) + 2, -1, np.int32)
    addresses = (data.address, offsets.address, len(lines), b".", 1, wanted, into, copied.ctypes.data)
    count = compiled().beginning(*addresses)
    assert page[mmap.PAGESIZE - len(kept) : mmap.PAGESIZE] == kept
    assert count == sum(line.startswith(b".") == wanted for line in lines)
    assert copied[count] == len(kept)
    assert (copied[count + 1 :] == -1).all()


def compiled_of(folder: Path, text: bytes) -> Path:
    (folder / "source.c").write_bytes(text)
    assert compile_library(folder / "source.c", folder / "made.so") is None
    return folder / "made.so"


def no_library(folder: Path) -> Path:
    (folder / "text.so").write_text("compiled for another machine")
    return folder / "text.so"


OTHERS = {
    "of another text": lambda folder: compiled_of(folder, SOURCE.read_bytes() + b"\n"),
    "with nothing of it": lambda folder: compiled_of(folder, b"int other;\n"),
    "without its functions": lambda folder: compiled_of(
        folder, b"const unsigned dagkit_source = %du;\n" % zlib.crc32(SOURCE.read_bytes())
    ),
    "for another machine": no_library,
    "not there": lambda folder: folder / "absent.so",
}


@compiling
@pytest.mark.parametrize("made", OTHERS.values(), ids=OTHERS.keys())
def test_only_what_was_compiled_of_this_very_text_is_used(made, tmp_path):
    assert compiled(LIBRARY) is not None, (
        f"{LIBRARY.name} is missing, or of another {SOURCE.name}: run `make clean test`"
    )
    assert compiled(made(tmp_path)) is None
