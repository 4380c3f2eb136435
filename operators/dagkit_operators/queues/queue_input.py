"""Input from a queue of a message broker."""

from abc import abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any, Generic

from pydantic import Field, PositiveInt, PrivateAttr, SecretStr
from typing_extensions import TypeVar

from dagkit import Context, InputOperator, OutputPort, State, Unavailable, Until
from dagkit_operators.payloads import FileInfo, Rejected
from dagkit_operators.queues.consumer import Consumer, connect, disconnect
from dagkit_operators.queues.queue_message import Delivery, QueueMessage, Unnamed, UnnamedMessages
from dagkit_operators.records.rejecting import ItemRejected

T = TypeVar("T", default=Any)

_DIGEST = 16
_POLL_MILLIS = 50


@dataclass(frozen=True, slots=True)
class _Look:
    """The new messages of one look."""

    digests: dict[str, None]
    """The digests of the IDs that their senders gave."""
    messages: set[str]
    """The IDs."""


class AbstractQueueInput(InputOperator, Generic[T]):
    """Receives the messages of a queue through a transport of kombu; RabbitMQ and the one in memory are tested.

    The ledger records each message before it is used. A message is acknowledged after the window that took it is
    committed; if the output `settled` leads to an operator that acknowledges, such as `AcknowledgeFiles`, it does so
    instead. A message that the broker delivers again is recognized by its ID, or if it has none by its content and the
    broker's mark, and is not sent again.
    """

    checkpointable_within_app_window = False
    output = OutputPort[T](main=True)
    settled = OutputPort(str)
    rejected = OutputPort(Rejected)

    url: SecretStr = SecretStr("memory://")
    """The URL of the broker, such as amqp://user:password@host/vhost. The default is a broker in this process."""
    queue: str = Field(default=..., kw_only=False, min_length=1)
    """The name of the queue, which must exist."""
    most_unacknowledged: PositiveInt = 1000
    """The most messages that the broker delivers before it has the acknowledgement of earlier ones."""
    remembered: PositiveInt = 100_000
    """How many of the last messages are recognized at least if the broker delivers them again."""
    transport_options: Mapping[str, Any] = {}
    """Options of the transport, as kombu describes them."""
    quiet_millis: PositiveInt = 1000
    """A launch with an end, such as one with `--once`, ends when the broker has had no message for so long."""

    known = State("")
    """The concatenated digests of the IDs of the last messages."""

    unnamed = State[dict[str, list[int]]](dict)
    """Taken messages without an ID that the broker may deliver again: their numbers, by the digest of the content."""
    next_unnamed = State(0)

    _known: set[str] = PrivateAttr(default_factory=set)
    _window: int = PrivateAttr(default=0)
    _taken: deque[tuple[int, str]] = PrivateAttr(default_factory=deque)
    """The messages to acknowledge, each with the window that takes it."""
    _removed: list[Unnamed] = PrivateAttr(default_factory=list)
    """The messages without an ID that the broker has removed, and that the last look removed from the state."""
    _still_known: list[Unnamed] = PrivateAttr(default_factory=list)
    """Those that the state has again, because that look was undone."""
    _consumer: Consumer | None = PrivateAttr(default=None)
    _context: Context | None = PrivateAttr(default=None)

    @abstractmethod
    def convert(self, message: QueueMessage) -> T:
        """The item of a message. Raise ValueError to reject the message, and `Unavailable` to get it again later."""

    def setup(self, context: Context) -> None:
        self._context = context
        self._connect()

    def teardown(self) -> None:
        if self._consumer is not None:
            disconnect(self._consumer)
            # The connection confirms its last acknowledgements while it is closed.
            self._forget_removed(UnnamedMessages(self.unnamed))
            self._consumer = None

    @property
    def has_unrecorded(self) -> bool:
        """Whether the broker has removed messages without an ID: the next launch must not take equal ones for them."""
        return bool(self._removed)

    def begin_window(self, window_id: int) -> None:
        self._window = window_id

    def committed(self, window_id: int) -> None:
        while self._taken and self._taken[0][0] <= window_id:
            self._connected.acknowledge(self._taken.popleft()[1])

    def emit_tuples(self) -> None:
        """Send the messages that have arrived."""
        try:
            self._look()
        # The engine undoes the look. On a new connection its messages come again, as all that are not acknowledged.
        except Unavailable:
            undone = self._connected
            disconnect(undone)
            self._still_known = [*self._removed, *undone.confirmed()]
            self._connect()
            raise

    def _connect(self) -> None:
        self._known = _digests_in(self.known)
        self._taken.clear()
        self._consumer = connect(
            self.url.get_secret_value(),
            self.queue,
            self.most_unacknowledged,
            self.transport_options,
            commits_acknowledge=not self.settled.is_connected,
        )

    def _look(self) -> None:
        unnamed = UnnamedMessages(self.unnamed, self.next_unnamed)
        self._forget_removed(unnamed)
        look = _Look({}, set())
        for delivery in self._arrived():
            message = delivery.message
            if delivery.is_named:
                is_new = self._is_new(message.id, look)
            else:
                message, is_new = self._named(delivery, unnamed, look)
            if is_new:
                self._send(message)
            # The ledger does not record the first one before this look ends. If the look fails, the broker is to have
            # the message.
            elif message.id in look.messages:
                self._settle_later(message.id)
            else:
                self._settle(message.id)
        self.next_unnamed = unnamed.next_number
        if look.digests:
            self.known += "".join(look.digests)
            if len(self.known) > 2 * _DIGEST * self.remembered:
                # Only at twice as many, so that not every look copies all of them.
                self.known = self.known[-_DIGEST * self.remembered :]
                self._known = _digests_in(self.known)

    def _forget_removed(self, unnamed: UnnamedMessages) -> None:
        self._removed = [*self._still_known, *self._connected.confirmed()]
        self._still_known = []
        for message in self._removed:
            unnamed.remove(message)

    def _is_new(self, name: str, look: _Look) -> bool:
        """Whether no message with this ID is known. From now on it is."""
        digest = blake2b(name.encode(), digest_size=_DIGEST // 2).hexdigest()
        if digest in self._known:
            return False
        self._known.add(digest)
        look.digests[digest] = None
        look.messages.add(name)
        return True

    def _named(self, delivery: Delivery, unnamed: UnnamedMessages, look: _Look) -> tuple[QueueMessage, bool]:
        """Give a message its ID. Return the message, and whether it is new."""
        digest = delivery.message.id
        earlier = unnamed.find(digest, self._connected.has) if delivery.is_redelivered else None
        named = earlier or unnamed.add(digest)
        self._connected.name(delivery, named)
        if earlier is None:
            look.messages.add(named.id)
        return replace(delivery.message, id=named.id), earlier is None

    def _send(self, message: QueueMessage) -> None:
        try:
            item = self.convert(message)
        except ValueError as error:
            self._reject(message, error)
        else:
            self.output.emit(item)
            if not self.settled.is_connected:
                self._taken.append((self._window, message.id))

    def looks_again_in_millis(self) -> int:
        """The time until the next look for messages."""
        return _POLL_MILLIS

    def _arrived(self) -> list[Delivery]:
        """The messages to send; in a launch with an end, the input looks again until there are none for a while."""
        assert self._context is not None, "it is set up before it runs"
        consumer, quiet_seconds = self._connected, self.quiet_millis / 1000
        taken = consumer.take(self.most_unacknowledged)
        if not taken and self._context.until is not Until.STOPPED and not consumer.is_quiet(quiet_seconds):
            # A broker may be away for hours. A wait within the look could not be ended by a stop or an interrupt.
            self._context.in_background(partial(consumer.wait, quiet_seconds))
        return taken

    @property
    def _connected(self) -> Consumer:
        assert self._consumer is not None, "an operator is set up before it runs"
        return self._consumer

    def _settle(self, name: str) -> None:
        """Acknowledge a message of which nothing is left to do, unless a file of it is still being read."""
        if self.settled.is_connected:
            self.settled.emit(name)
        else:
            self._connected.acknowledge(name)

    def _settle_later(self, name: str) -> None:
        """Acknowledge a message after the commit of the window that takes it."""
        if self.settled.is_connected:
            self.settled.emit(name)
        else:
            self._taken.append((self._window, name))

    def _reject(self, message: QueueMessage, error: ValueError) -> None:
        """Send a message to `rejected`, and acknowledge it after that is committed."""
        text = message.body.decode("utf-8", "backslashreplace")
        rejected = Rejected("", None, text, f"{error} (message {message.id} of the queue {self.queue})")
        if not self.rejected.is_connected:
            raise ItemRejected(rejected) from error
        self.rejected.emit(rejected)
        self._settle_later(message.id)


def _digests_in(known: str) -> set[str]:
    return {known[at : at + _DIGEST] for at in range(0, len(known), _DIGEST)}


class QueueInput(AbstractQueueInput[QueueMessage]):
    """Receives the messages of a queue."""

    kind = "queues.input/1"
    output = OutputPort(QueueMessage, main=True)

    def convert(self, message: QueueMessage) -> QueueMessage:
        return message


class QueuePaths(AbstractQueueInput[FileInfo]):
    """Receives the paths or URLs of files, one in each message, for a `FileSplitterBase`."""

    kind = "queues.paths/1"
    output = OutputPort(FileInfo, main=True)

    def convert(self, message: QueueMessage) -> FileInfo:
        path = message.text.strip()
        if not path or not path.isprintable():
            raise ValueError("the message is no path")
        return FileInfo(path, identity=message.id)
