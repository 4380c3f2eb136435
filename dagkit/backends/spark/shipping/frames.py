"""Frames: batches as bytes, each with the number of its wire. A row holds one or more frames.

A frame is a complete Arrow stream, whose schema holds the form of the batch. If Arrow would change a value, the frame
is a pickle of the items. If the stream has a codec, the codec writes the items.

If the target takes origins along, a frame that says where the items were read precedes that of the items.
"""

import functools
import struct
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NamedTuple

import pyarrow as pa

from dagkit.api.controls import controls_in
from dagkit.backends.spark.shipping.forms import Arrays, AsArrow, Form, NoForm, read, written
from dagkit.backends.spark.shipping.shipping import Known
from dagkit.engine.program.failures import CodecFailed
from dagkit.engine.program.program import Target
from dagkit.engine.worker.outbox import Arrived
from dagkit.schema.batch import Batch
from dagkit.schema.columns import Lines, unknown

LARGEST_BYTES = 4 << 20
"""A larger batch is split, unless it is a single item."""
ALIGNED = 64
"""Frames start at a multiple of this, so that Arrow can read its arrays without a copy."""
_HEADER = struct.Struct("<iiq48x")
"""The wire, the writing and the length, padded so that the content is aligned, too."""
_FORM = b"dagkit.form"


class Writing(IntEnum):
    """The encoding of the items in a frame."""

    ARROW = 0
    PICKLED = 1
    CODED = 2
    ORIGIN = 3
    """The origin of the items in the next frame."""


class Frame(NamedTuple):
    """The bytes of one batch."""

    writing: Writing
    content: Any
    """An object with the buffer protocol."""
    origin: bytes = b""
    """What the frame before this one holds; empty: there is none."""

    def pieces(self, wire: int) -> list[Any]:
        """The header, the content, and padding up to the start of the next frame."""
        length = memoryview(self.content).nbytes
        before = Frame(Writing.ORIGIN, self.origin).pieces(wire) if self.origin else []
        return [*before, _HEADER.pack(wire, self.writing, length), self.content, bytes(-length % ALIGNED)]


class _Origin(NamedTuple):
    """Where the items of a frame were read."""

    element: Any = None
    starts: bytes | None = None
    """The offset of each item, as 64-bit integers; None: the columns know them, or they are unknown."""
    part_start: int | None = None
    """The offset of the part of the input that holds all items."""

    @classmethod
    def of(cls, batch: Batch[Any], element: Any, writing: Writing) -> "_Origin":
        columns = batch.columns.values()
        if writing is Writing.ARROW and any(
            isinstance(column, Lines) and column.base is not None for column in columns
        ):
            return cls(element)
        starts = next((starts for column in columns if (starts := column.starts()) is not None), None)
        if starts is not None:
            return cls(element, array("q", starts).tobytes())
        return cls(element, None, next((part for column in columns if (part := column.part_start()) is not None), None))

    def given_to(self, batch: Batch[Any]) -> Batch[Any]:
        """The batch with the offsets that the origin holds."""
        starts = self.starts
        if starts is None:
            return batch if self.part_start is None else batch.placed(unknown, self.part_start)
        return batch.placed(lambda: array("q", starts).tolist())


class Frames:
    """Writes batches as frames and reads them, on the driver and on workers."""

    def __init__(self, known: Known, targets: Mapping[int, Target]) -> None:
        self._known = known
        self._targets = targets
        # A stream has few forms, and each of its frames holds one.
        self._form_bytes = functools.lru_cache(maxsize=256)(known.dumps)
        self._form = functools.lru_cache(maxsize=256)(known.loads)

    def of(self, batch: Batch[Any], wire: int, element: Any = None) -> Iterator[Frame]:
        """The frames of a batch: one, or several if it is larger than LARGEST_BYTES.

        All its items were read from the element, which only a target that takes origins along receives.
        """
        # Control tuples were not read from an element.
        if not self._targets[wire].placed or controls_in(batch):
            yield from self._of(batch, wire)
            return
        frames = list(self._of(batch, wire))
        # An origin has the offset of each item, so it precedes a frame with just these items.
        if len(frames) == 1:
            origin = _Origin.of(batch, element, frames[0].writing)
            is_known = any(each is not None for each in origin)
            yield frames[0]._replace(origin=self._known.dumps(origin) if is_known else b"")
        else:
            half = len(batch) // 2
            yield from self.of(batch.sliced(0, half), wire, element)
            yield from self.of(batch.sliced(half, len(batch) - half), wire, element)

    def _of(self, batch: Batch[Any], wire: int) -> Iterator[Frame]:
        codec = self._targets[wire].keying.codec
        # The author's codec writes items of its stream, and knows no control tuples.
        if codec is not None and not controls_in(batch):
            with self._by_codec(wire):
                coded = pa.array([codec.to_bytes(item) for item in batch.items()], pa.large_binary())
            yield from self._arrow(Writing.CODED, AsArrow(), [coded])
            return
        try:
            form, arrays = written(batch)
        except NoForm:
            yield from self._pickled(batch)
        else:
            if arrays:
                yield from self._arrow(Writing.ARROW, form, arrays)
            else:  # all columns are constant, so no array holds the number of items
                yield from self._pickled(batch)

    def read(self, payload: pa.Buffer) -> Iterator[Arrived]:
        """The batches of a row, each with the number of its wire."""
        at, origin = 0, _Origin()
        while at < payload.size:
            wire, writing, length = _HEADER.unpack_from(payload, at)
            content = payload.slice(at + _HEADER.size, length)
            at += _HEADER.size + length + -length % ALIGNED
            if writing == Writing.ORIGIN:
                origin = self._known.loads(content)
            else:
                yield Arrived(wire, origin.given_to(self._batch(Writing(writing), content, wire)), origin.element)
                origin = _Origin()

    def _batch(self, writing: Writing, content: pa.Buffer, wire: int) -> Batch[Any]:
        if writing is Writing.PICKLED:
            return Batch.of(self._known.loads(content))
        with pa.ipc.open_stream(content) as stream:
            arrays = stream.read_next_batch()
            if writing is Writing.CODED:
                codec = self._targets[wire].keying.codec
                assert codec is not None, "what a codec wrote is read by the same codec"
                with self._by_codec(wire):
                    return Batch.of([codec.from_bytes(data) for data in arrays.column(0).to_pylist()])
            form: Form = self._form(stream.schema.metadata[_FORM])
            return read(form, Arrays(iter(arrays.columns), arrays.num_rows))

    @contextmanager
    def _by_codec(self, wire: int) -> Iterator[None]:
        """Raise CodecFailed, with the operator that receives the items, if the author's codec raises."""
        try:
            yield
        except Exception as error:
            raise CodecFailed(self._targets[wire].into[0]) from error

    def _pickled(self, batch: Batch[Any]) -> Iterator[Frame]:
        content = self._known.dumps(list(batch.items()))
        if len(content) > LARGEST_BYTES and len(batch) > 1:
            half = len(batch) // 2
            yield from self._pickled(batch.sliced(0, half))
            yield from self._pickled(batch.sliced(half, len(batch) - half))
        else:
            yield Frame(Writing.PICKLED, content)

    def _arrow(self, writing: Writing, form: Form, arrays: list[pa.Array]) -> Iterator[Frame]:
        parts = list(_parts(pa.RecordBatch.from_arrays(arrays, names=list(map(str, range(len(arrays)))))))
        # A form may hold where the first line was read, which is true of the first part only.
        metadata = {_FORM: self._form_bytes(form if len(parts) == 1 else form.of_part())}
        yield from (Frame(writing, _stream(part.replace_schema_metadata(metadata))) for part in parts)


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes > LARGEST_BYTES and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _parts(batch.slice(0, half))
        yield from _parts(batch.slice(half))
    else:
        yield batch


def _stream(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue()
