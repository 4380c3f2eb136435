"""Messages of librdkafka as columns, and columns as messages, in compiled C. Without it, Python handles each message.

librdkafka is the library below confluent-kafka. A client of confluent-kafka does everything else: settings, errors,
assignments and transactions. Only messages pass by it, so its handle of librdkafka is needed.
"""

import ctypes
import os
import tempfile
from collections.abc import Iterator, Sequence
from ctypes import POINTER, Structure, addressof, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagkit_operators.native.compiled import kafka_columns

if TYPE_CHECKING:  # Arrow is not loaded when only compiling
    import numpy as np
    import pyarrow as pa

# confluent-kafka makes an object of each message and takes each with a call: 1.8 µs to read, 3.5 to stage, 5.2 to send.
# Columns take 1.4 µs to stage and 1.1 to send, which counts most because the driver alone sends. The handle is the
# first member of a client, used only if the memory there has the name that librdkafka gives to clients: with another
# layout, messages pass through Python. A reader takes messages from the queue of its partition, so that librdkafka does
# not call confluent-kafka's error functions while it is not prepared for that.
QUEUE_IS_FULL = -184
"""The error of a producer that has no room now."""
_LOOKED_THROUGH = 16384
"""The bytes of a handle in which its name is."""


class _Column(Structure):
    """Values, as `kafka_columns.c` declares them."""

    _fields_ = (("bytes", c_void_p), ("starts", c_void_p), ("known", c_void_p))


class _TopicPartition(Structure):
    """The beginning of `rd_kafka_topic_partition_t`."""

    _fields_ = (("topic", c_char_p), ("partition", c_int32), ("offset", c_int64))


class _Functions(Structure):
    """Functions of librdkafka, as `kafka_columns.c` declares them."""

    _fields_ = tuple((name, c_void_p) for name in ("timestamp", "headers", "send", "poll", "next", "destroy"))


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """Messages that follow each other in a partition."""

    offsets: "np.ndarray[Any, np.dtype[np.int64]]"
    times: "pa.Int64Array"
    keys: "pa.LargeBinaryArray"
    values: "pa.LargeBinaryArray"
    headers: Sequence[tuple[tuple[str, bytes | None], ...]] | None
    """None: no message has any."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event that is no message: an error, or the end of the partition."""

    code: int
    offset: int


class Native:
    """The functions of librdkafka and those of `kafka_columns.c`, which call it."""

    def __init__(self, compiled: ctypes.CDLL, library: ctypes.CDLL) -> None:
        names = "message_timestamp message_headers producev queue_poll event_message_next event_destroy"
        pointers = [ctypes.cast(getattr(library, f"rd_kafka_{name}"), c_void_p).value for name in names.split()]
        self.compiled = compiled
        self._functions = _Functions(*pointers)
        self.functions = addressof(self._functions)
        self.queue_of = _declared(library.rd_kafka_queue_get_partition, c_void_p, c_void_p, c_char_p, c_int32)
        self.forward = _declared(library.rd_kafka_queue_forward, None, c_void_p, c_void_p)
        self.end_queue = _declared(library.rd_kafka_queue_destroy, None, c_void_p)
        self.error_of = _declared(library.rd_kafka_event_error, c_int32, c_void_p)
        self.place_of = _declared(library.rd_kafka_event_topic_partition, POINTER(_TopicPartition), c_void_p)
        self.end_place = _declared(library.rd_kafka_topic_partition_destroy, None, c_void_p)
        self.topic_of = _declared(library.rd_kafka_topic_new, c_void_p, c_void_p, c_char_p, c_void_p)
        self.end_topic = _declared(library.rd_kafka_topic_destroy, None, c_void_p)
        self.headers = _declared(library.rd_kafka_message_headers, c_int32, c_void_p, POINTER(c_void_p))
        self.header = _declared(
            library.rd_kafka_header_get_all,
            c_int32,
            c_void_p,
            c_size_t,
            POINTER(c_char_p),
            POINTER(c_void_p),
            POINTER(c_size_t),
        )


def _declared(function: Any, returns: Any, *takes: Any) -> Any:
    function.restype, function.argtypes = returns, takes
    return function


@cache
def native() -> Native | None:
    """The functions, if there was a compiler and if librdkafka shows its own."""
    compiled = kafka_columns()
    if compiled is None:
        return None
    from confluent_kafka import cimpl  # noqa: PLC0415 - an extra

    try:
        return Native(compiled, ctypes.CDLL(cimpl.__file__))
    # confluent-kafka was built with a library that hides its functions.
    except (OSError, AttributeError):
        return None


@cache
def setting_names() -> frozenset[str]:
    """The names of all settings that librdkafka has, from the table that it prints; empty if it cannot be asked."""
    try:
        from confluent_kafka import cimpl  # noqa: PLC0415 - an extra

        library, of_files = ctypes.CDLL(cimpl.__file__), ctypes.CDLL(None)
        show = _declared(library.rd_kafka_conf_properties_show, None, c_void_p)
        open_file = _declared(of_files.fdopen, c_void_p, c_int, c_char_p)
        close_file = _declared(of_files.fclose, c_int, c_void_p)
    except (ImportError, OSError, AttributeError, TypeError):
        return frozenset()
    with tempfile.TemporaryFile() as printed:
        # `fclose` closes the descriptor that it is given, and Python closes that of its own file.
        file = open_file(os.dup(printed.fileno()), b"w")
        show(file)
        close_file(file)
        printed.seek(0)
        lines = printed.read().decode().splitlines()
    named = (line.split("|", 1)[0].strip() for line in lines if "|" in line)
    return frozenset(name for name in named if name != "Property" and not name.startswith("-"))


def handle_of(client: Any) -> int | None:
    """The address of the `rd_kafka_t` of a client of confluent-kafka. None if it is not where it is expected.

    It is the first member after those of every Python object. What is there is read as a file, which fails where a
    pointer would crash, and must contain the name that librdkafka gave the client.
    """
    address = c_void_p.from_address(id(client) + object.__basicsize__).value
    if not address:
        return None
    try:
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            content = os.pread(memory.fileno(), _LOOKED_THROUGH, address)
    except (OSError, OverflowError):
        return None
    return address if b"#consumer-" in content or b"#producer-" in content else None


class PartitionQueue:
    """The messages and errors of one partition. The consumer itself gets only errors that concern all partitions."""

    def __init__(self, native: Native, handle: int, topic: str, partition: int, most: int) -> None:
        """Make the queue before the partition is assigned: librdkafka then uses it from the first message on."""
        self._native = native
        self._compiled, self._functions = native.compiled, native.functions
        self._queue = native.queue_of(handle, topic.encode(), partition)
        # Otherwise its messages would go on to the queue of the consumer.
        native.forward(self._queue, None)
        self._events = (c_void_p * most)()
        self._messages = (c_void_p * most)()

    def close(self) -> None:
        """Release the queue. Call it before the consumer is closed."""
        self._native.end_queue(self._queue)

    def take(self, seconds: float) -> list[MessageColumns | Event]:
        """Return the messages and events that have arrived, in order. If there are none, wait for the first."""
        events, messages = addressof(self._events), addressof(self._messages)
        count = self._compiled.dagkit_take(
            self._functions, self._queue, round(seconds * 1000), events, messages, len(self._events)
        )
        try:
            return list(self._in_order(count))
        finally:
            self._compiled.dagkit_release(self._functions, events, count)

    def _in_order(self, count: int) -> Iterator[MessageColumns | Event]:
        at, sizes = 0, (c_int64 * 3)()
        while at < count:
            place = addressof(self._messages) + at * ctypes.sizeof(c_void_p)
            found = self._compiled.dagkit_messages(self._functions, place, count - at, sizes)
            yield self._columns(place, found, *sizes) if found else self._event(self._events[at])
            at += found or 1

    def _event(self, event: int | None) -> Event:
        place = self._native.place_of(event)
        offset = place.contents.offset if place else -1
        if place:
            self._native.end_place(place)
        return Event(self._native.error_of(event), offset)

    def _columns(self, place: int, count: int, key_bytes: int, value_bytes: int, with_headers: int) -> MessageColumns:
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling
        import pyarrow as pa  # noqa: PLC0415

        offsets, times = np.empty(count, np.int64), np.empty(count, np.int64)
        keys, values = _Filled(count, key_bytes), _Filled(count, value_bytes)
        self._compiled.dagkit_columns(
            self._functions,
            place,
            count,
            offsets.ctypes.data,
            times.ctypes.data,
            addressof(keys.column),
            addressof(values.column),
        )
        messages = (c_void_p * count).from_address(place)
        # Counted in C, since to ask each message takes a call.
        headers = [self._headers(message) for message in messages] if with_headers else None
        return MessageColumns(offsets, pa.array(times), keys.array(), values.array(), headers)

    def _headers(self, message: int | None) -> tuple[tuple[str, bytes | None], ...]:
        headers, name, value, size = c_void_p(), c_char_p(), c_void_p(), c_size_t()
        if self._native.headers(message, byref(headers)):
            return ()
        found: list[tuple[str, bytes | None]] = []
        while not self._native.header(headers, len(found), byref(name), byref(value), byref(size)):
            content = None if value.value is None else ctypes.string_at(value.value, size.value)
            found.append(((name.value or b"").decode(), content))
        return tuple(found)


class _Filled:
    """Memory for the values of a column."""

    def __init__(self, count: int, size: int) -> None:
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling
        import pyarrow as pa  # noqa: PLC0415

        self._count = count
        self._known = np.empty(count, np.uint8)
        self._buffers = [pa.py_buffer(np.empty(count + 1, np.int64)), pa.py_buffer(np.empty(size, np.uint8))]
        starts, content = self._buffers
        self.column = _Column(content.address, starts.address, self._known.ctypes.data)

    def array(self) -> "pa.LargeBinaryArray":
        import numpy as np  # noqa: PLC0415 - as above
        import pyarrow as pa  # noqa: PLC0415

        valid = None if self._known.all() else pa.py_buffer(np.packbits(self._known, bitorder="little"))
        return pa.Array.from_buffers(pa.large_binary(), self._count, [valid, *self._buffers])


class TopicSender:
    """Gives columns to a producer as messages of one topic."""

    def __init__(self, native: Native, handle: int, topic: str) -> None:
        self._native = native
        self._send = partial(native.compiled.dagkit_send, native.functions, handle)
        self._topic = native.topic_of(handle, topic.encode(), None)

    def close(self) -> None:
        """Release the topic. Call it before the producer is closed."""
        self._native.end_topic(self._topic)

    def send(
        self, first: int, keys: "pa.LargeBinaryArray", values: "pa.LargeBinaryArray", times: "pa.Int64Array"
    ) -> tuple[int, int]:
        """Give messages from `first` on to the producer. Return the first that it did not take, and its error or 0.

        Without a time, a message gets the present one.
        """
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        error = c_int32()
        columns = [_read(keys), _read(values)]
        stamps = np.ascontiguousarray(times.fill_null(0).to_numpy())
        reached = self._send(
            self._topic,
            first,
            len(values),
            *(addressof(column) for column, _ in columns),
            stamps.ctypes.data,
            addressof(error),
        )
        return reached, error.value


def _read(array: "pa.LargeBinaryArray") -> tuple[_Column, Any]:
    """An array as `kafka_columns.c` declares it, and what must be kept until it is read."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    _, starts, content = array.buffers()
    known = None
    if array.null_count:
        known = np.ascontiguousarray(array.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8))
    column = _Column(
        content.address if content is not None and content.size else None,
        starts.address + array.offset * ctypes.sizeof(c_int64),
        None if known is None else known.ctypes.data,
    )
    return column, (known, starts, content)
