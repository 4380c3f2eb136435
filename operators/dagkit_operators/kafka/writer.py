"""Writing messages to topics, each of them once."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic

from pydantic import Field, NonNegativeFloat, PositiveInt, PrivateAttr
from typing_extensions import TypeVar

from dagkit import Arrowed, Batch, Column, Constant, ExternalOutput, InputPort
from dagkit.errors import clipped
from dagkit_operators.kafka.client import KafkaClient
from dagkit_operators.kafka.messages import (
    Headers,
    KafkaMessage,
    OpenEntry,
    Outgoing,
    columns_of,
    columns_without_headers,
)
from dagkit_operators.kafka.transactions import TransactionalTopic
from dagkit_operators.records.rejecting import Rejecting
from dagkit_operators.writing.content import as_bytes

if TYPE_CHECKING:  # compiling must not load Arrow
    import pyarrow as pa

T = TypeVar("T", default=Any)

LEAST_LIMIT = 1000
"""The least limit of messages that the client library accepts."""
OVERHEAD_BYTES = 100
"""An upper bound of what a message needs besides its key, its value and its headers."""


class KafkaWriter(KafkaClient, Rejecting, Generic[T]):
    """Writes items to a topic: texts and bytes as they are, a KafkaMessage with its key, headers and time.

    The messages of a window become visible together, after the window's commit, in one transaction. It also writes the
    number of the window to `windows_topic`, so that a window whose transaction is repeated after a crash is there once.
    Consumers must read with `isolation.level=read_committed`. Messages of one key keep the order in which one partition
    of the operator sends them.
    """

    kind = "kafka.writer/1"
    input = InputPort[T]()
    staged = ExternalOutput(
        lambda writer: TransactionalTopic(
            writer.client_settings(), writer.topic, writer.windows_topic, writer.transactional_id_prefix
        ),
        waits_seconds=lambda writer: writer.waits_seconds,
    )

    topic: str = Field(default=..., kw_only=False, min_length=1)
    """The topic, which must exist."""
    key: Callable[[Any], str | bytes | None] | None = None
    """Makes the key of an item; None: that of a KafkaMessage, and none for any other item."""
    value: Callable[[Any], str | bytes | None] | None = None
    """Makes the content of an item; None: that of a KafkaMessage, and any other item itself.

    If `key` or `value` raises ValueError, the item goes to `rejected`.
    """
    windows_topic: str = "dagkit-windows"
    """The topic with the last window of each writer. It is created if it is missing; keep it as long as the topic."""
    transactional_id_prefix: str = ""
    """What transactional IDs begin with, for the rights of Kafka that are granted by prefix.

    A launch with another prefix does not fence one that still runs with the former: let that one end before.
    """
    largest_message: PositiveInt = 1_000_000
    """The most bytes of a message: a larger one is rejected. The topic's `max.message.bytes` must not be smaller."""
    waits_seconds: NonNegativeFloat | None = None
    """How long a run waits for a cluster that is away before it fails; None: until it is stopped."""
    batch_size: PositiveInt = 10_000
    """The most messages that are gathered before they are staged."""

    _open: OpenEntry | None = PrivateAttr(default=None)
    """The entry to which messages are added."""
    _single: list[Outgoing] = PrivateAttr(default_factory=list)
    """Messages that follow those of the entry."""
    _count: int = PrivateAttr(default=0)
    """The number of messages in both."""

    def client_settings(self, **defaults: Any) -> dict[str, Any]:
        """The settings of a client, with the limit of the messages that may be written."""
        limit = max(LEAST_LIMIT, self.largest_message + OVERHEAD_BYTES)
        return super().client_settings(**{"message.max.bytes": limit, **defaults})

    def process(self, item: T) -> None:
        self._add_single(self._single, item)
        self._count_more(1)

    def process_batch(self, batch: Batch[T]) -> None:
        columns = self._columns(batch)
        if columns is not None and _longest(columns) <= self.largest_message:
            self._entry().add(columns)
        else:
            # Once for the batch: a look-up of a private attribute takes as long as the rest of the work on a message.
            single = self._single
            for item in batch.items():
                self._add_single(single, item)
        self._count_more(len(batch))

    def before_checkpoint(self, window_id: int) -> None:  # noqa: ARG002 - the same for every window
        # Not in `end_window`, which is not called in each streaming window, while each has an instance of its own.
        self._stage()

    def _columns(self, batch: Batch[T]) -> "pa.RecordBatch | None":
        """The messages for a batch. None if each must be made by itself: some have headers, or cannot be written."""
        are_messages = batch.made_by is KafkaMessage or all(isinstance(item, KafkaMessage) for item in batch.items())
        times: Sequence[int | None] | pa.Array | None = None
        if are_messages:
            headers = batch.column("headers")
            if any([headers.value] if isinstance(headers, Constant) else headers.values()):
                return None
            times = _times(batch.column("timestamp_millis"))
        elif any(isinstance(item, KafkaMessage) for item in batch.items()):
            return None
        try:
            keys = self._contents("key", self.key, batch, are_messages=are_messages)
            values = self._contents("value", self.value, batch, are_messages=are_messages)
        except ValueError:
            return None
        return columns_without_headers(keys, values, times)

    def _contents(
        self, what: str, function: Callable[[Any], Any] | None, batch: Batch[T], *, are_messages: bool
    ) -> "Sequence[bytes | None] | pa.Array | None":
        """The keys or the values of the messages for a batch. None: there are none."""
        if function is not None:
            return [_content(what, function(item)) for item in batch.items()]
        if are_messages:
            column = batch.column(what)
            return column.array() if isinstance(column, Arrowed) else column.values()
        return None if what == "key" else [_content(what, item) for item in batch.items()]

    def _add_single(self, single: list[Outgoing], item: Any) -> None:
        try:
            single.append(self._outgoing(item))
        except ValueError as fault:
            self.reject(item, item, fault)

    def _entry(self) -> OpenEntry:
        """The entry, with the single messages that came after those in it."""
        if self._open is None:
            self._open = OpenEntry()
        if self._single:
            # They came before what is added next, and messages of one key keep their order.
            single, self._single = self._single, []
            self._open.add(columns_of(single))
        return self._open

    def _count_more(self, count: int) -> None:
        self._count += count
        if self._count >= self.batch_size:
            self._stage()

    def _stage(self) -> None:
        if self._single or self._open is not None:
            self.staged.add(self._entry().content())
        self._open, self._count = None, 0

    def _outgoing(self, item: Any) -> Outgoing:
        """The message for an item. Raise ValueError if it cannot be written."""
        headers: Headers = ()
        time: int | None = None
        key, value = None, item
        if isinstance(item, KafkaMessage):
            key, value, headers, time = item.key, item.value, item.headers, _time(item.timestamp_millis)
        message = Outgoing(
            _content("key", key if self.key is None else self.key(item)),
            _content("value", value if self.value is None else self.value(item)),
            headers,
            time,
        )
        length = _length(message)
        if length > self.largest_message:
            raise ValueError(f"the message has {length} bytes, and largest_message is {self.largest_message}")
        return message


def _time(millis: int) -> int | None:
    return millis if millis >= 0 else None


def _times(column: Column) -> "Sequence[int | None] | pa.Array":
    if not isinstance(column, Arrowed):
        return list(map(_time, column.values()))
    import pyarrow as pa  # noqa: PLC0415 - compiling must not load Arrow
    import pyarrow.compute as pc  # noqa: PLC0415

    times = column.arrow
    return pc.if_else(pc.less(times, 0), pa.scalar(None, times.type), times)


def _longest(columns: "pa.RecordBatch") -> int:
    """The bytes of the longest message; 0 if there is none. No message has headers."""
    import pyarrow.compute as pc  # noqa: PLC0415 - compiling must not load Arrow

    lengths = [pc.fill_null(pc.binary_length(columns.column(name)), 0) for name in ("key", "value")]
    return pc.max(pc.add(*lengths)).as_py() or 0


def _length(message: Outgoing) -> int:
    length = len(message.key or b"") + len(message.value or b"")
    if message.headers:
        length += sum(len(name) + len(content or b"") + 10 for name, content in message.headers)
    return length


def _content(what: str, content: Any) -> bytes | None:
    if content is None or isinstance(content, bytes):
        return content
    if not isinstance(content, str):
        raise TypeError(
            f"the {what} {clipped(content, 60)} is neither text nor bytes; set `{what}` to a function that makes either"
        )
    return as_bytes(content)
