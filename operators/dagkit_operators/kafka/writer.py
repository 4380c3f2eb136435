"""Writing messages to topics, each of them once."""

from collections.abc import Callable
from typing import Any, Generic

from pydantic import Field, NonNegativeFloat, PositiveInt, PrivateAttr
from typing_extensions import TypeVar

from dagkit import Batch, ExternalOutput, InputPort
from dagkit_operators.kafka.client import KafkaClient
from dagkit_operators.kafka.entries import Outgoing, entry_of
from dagkit_operators.kafka.messages import Headers, KafkaMessage
from dagkit_operators.kafka.transactions import TransactionalTopic
from dagkit_operators.records.rejecting import Rejecting
from dagkit_operators.writing.content import as_bytes

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
        lambda writer: TransactionalTopic(writer.client_settings(), writer.topic, writer.windows_topic),
        waits_seconds=lambda writer: writer.waits_seconds,
    )

    topic: str = Field(default=..., min_length=1)
    """The topic, which must exist."""
    key: Callable[[Any], str | bytes | None] | None = None
    """Makes the key of an item; None: that of a KafkaMessage, and none for any other item."""
    value: Callable[[Any], str | bytes | None] | None = None
    """Makes the content of an item; None: that of a KafkaMessage, and any other item itself.

    If `key` or `value` raises ValueError, the item goes to `rejected`.
    """
    windows_topic: str = "dagkit-windows"
    """The topic with the last window of each writer. It is created if it is missing; keep it as long as the topic."""
    largest_message: PositiveInt = 1_000_000
    """The most bytes of a message: a larger one is rejected. The topic's `max.message.bytes` must not be smaller."""
    waits_seconds: NonNegativeFloat | None = None
    """How long a run waits for a cluster that is away before it fails; None: until it is stopped."""
    batch_size: PositiveInt = 10_000
    """The most messages that are gathered before they are staged."""

    _gathered: list[Outgoing] = PrivateAttr(default_factory=list)

    def client_settings(self, **defaults: Any) -> dict[str, Any]:
        """The settings of a client, with the limit of the messages that may be written."""
        limit = max(LEAST_LIMIT, self.largest_message + OVERHEAD_BYTES)
        return super().client_settings(**{"message.max.bytes": limit, **defaults})

    def process(self, item: T) -> None:
        self._gather(self._gathered, item)
        self._stage_full()

    def process_batch(self, batch: Batch[T]) -> None:
        gathered = self._gathered  # once for the batch: each look-up of a private attribute takes as long as a message
        if batch.made_by is KafkaMessage and self.key is None and self.value is None:
            columns = [batch.column(name).values() for name in ("key", "value", "headers", "timestamp_millis")]
            messages = [
                Outgoing(key, value, headers, _time(millis))
                for key, value, headers, millis in zip(*columns, strict=True)
            ]
            if max(map(_length, messages), default=0) <= self.largest_message:
                gathered += messages
                self._stage_full()
                return
        for item in batch.items():
            self._gather(gathered, item)
        self._stage_full()

    def end_window(self) -> None:
        self._stage()

    def _gather(self, gathered: list[Outgoing], item: Any) -> None:
        try:
            gathered.append(self._outgoing(item))
        except ValueError as fault:
            self.reject(item, item, fault)

    def _stage_full(self) -> None:
        if len(self._gathered) >= self.batch_size:
            self._stage()

    def _stage(self) -> None:
        if self._gathered:
            self.staged.add(entry_of(self._gathered))
            self._gathered = []

    def _outgoing(self, item: Any) -> Outgoing:
        """The message for an item. Raise ValueError if it cannot be written."""
        headers: Headers = ()
        time: int | None = None
        key, value = None, item
        if isinstance(item, KafkaMessage):
            key, value, headers, time = item.key, item.value, item.headers, _time(item.timestamp_millis)
        made = Outgoing(
            _content("key", key if self.key is None else self.key(item)),
            _content("value", value if self.value is None else self.value(item)),
            headers,
            time,
        )
        length = _length(made)
        if length > self.largest_message:
            raise ValueError(f"the message has {length} bytes, and largest_message is {self.largest_message}")
        return made


def _time(millis: int) -> int | None:
    return millis if millis >= 0 else None


def _length(message: Outgoing) -> int:
    length = len(message.key or b"") + len(message.value or b"")
    if message.headers:
        length += sum(len(name) + len(content or b"") + 10 for name, content in message.headers)
    return length


def _content(what: str, made: Any) -> bytes | None:
    if made is None or isinstance(made, bytes):
        return made
    if not isinstance(made, str):
        raise TypeError(
            f"the {what} {made!r:.60} is neither text nor bytes; set `{what}` to a function that makes either"
        )
    return as_bytes(made)
