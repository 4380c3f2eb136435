"""The connection of the driver to a queue: receives messages, and acknowledges those that are done with.

One thread owns the connection, because clients of brokers are not safe in several. It survives a broker that is away.
"""

import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from ssl import SSLCertVerificationError
from typing import Any

from dagkit import Outage
from dagkit.errors import RunFailure
from dagkit.ground.clock import patient
from dagkit_operators.libraries import library
from dagkit_operators.queues.queue_message import Delivery, Unnamed

_WAIT_SECONDS = 0.05
"""How long the thread waits for messages before it acknowledges others."""
_ENDS_WITHIN_SECONDS = 10.0

_REFUSALS = (403, 404, 530)
"""The codes of AMQP for: access refused, not found, not allowed."""


def at_host(url: str) -> str:
    """The host and port of a broker, ` at HOST:PORT`. Empty if there is none, or if it may be part of a password."""
    host = url.partition("://")[2].partition("/")[0]
    return f" at {host.rpartition('@')[2]}" if host and url.count("@") == host.count("@") else ""


class QueueRefused(RunFailure):
    """A broker refuses the credentials or has no such queue, or there is no way to connect to it."""

    code = "queue-refused"

    usual_help = "create the queue, or correct its name, the user or the password"


class Consumer:
    """Receives the messages of one queue."""

    def __init__(
        self, url: str, queue: str, most: int, options: Mapping[str, Any], *, commits_acknowledge: bool
    ) -> None:
        self._kombu = library("kombu", "queues")
        self._url, self._queue, self._most, self._options = url, queue, most, dict(options)
        # Values pass between the loop and the thread through deques without the lock: to append and to take are atomic.
        self._received: deque[Delivery] = deque()
        self._delivered: dict[str, list[Any]] = {}
        """The messages that are not acknowledged, as kombu received them, by ID; before they have one, under `""`."""
        self._delivered_lock = threading.Lock()
        self._done: deque[str] = deque()
        """The IDs of messages to acknowledge."""
        self._unnamed: dict[str, Unnamed] = {}
        """The messages without an ID that `name` has named, until the broker has confirmed their acknowledgements."""
        self._confirmed: deque[Unnamed] = deque()
        self._failure: QueueRefused | None = None
        self._stopped = threading.Event()
        self._commits_acknowledge = commits_acknowledge
        """Whether a commit acknowledges the messages that it took; if not, they may wait for other messages."""
        self._watches_for_quiet = False
        self._quiet_since: float | None = None
        """When the broker had no message to send for the first time since the last one; None if it may send one."""
        self._arrived = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"queue {queue}", daemon=True)
        self._thread.start()

    def take(self, most: int) -> list[Delivery]:
        """The messages that have arrived, at most so many. Raise what the broker refused."""
        if self._failure is not None:
            raise self._failure
        taken: list[Delivery] = []
        # The thread may clear the messages meanwhile. They come again.
        with suppress(IndexError):
            while len(taken) < most:
                taken.append(self._received.popleft())
        return taken

    def name(self, delivery: Delivery, message: Unnamed) -> None:
        """Give a delivered message its ID, under which it is acknowledged."""
        with self._delivered_lock:
            self._unnamed[message.id] = message
            # If its connection was lost, it is not there, and comes again.
            if delivery.received in self._delivered.get("", ()):
                self._delivered[""].remove(delivery.received)
                self._delivered.setdefault(message.id, []).append(delivery.received)

    def has(self, name: str) -> bool:
        """Whether the present connection has delivered a message with this ID, which is not acknowledged."""
        return name in self._delivered

    def confirmed(self) -> list[Unnamed]:
        """The messages without an ID that the broker has removed since the last call."""
        return [self._confirmed.popleft() for _ in range(len(self._confirmed))]

    def is_quiet(self, seconds: float) -> bool:
        """Whether the broker has had no message to send for so long."""
        self._watches_for_quiet = True
        since = self._quiet_since
        return since is not None and not (self._received or self._done) and time.monotonic() - since >= seconds

    def wait(self, quiet_seconds: float) -> None:
        """Wait until a message has arrived, there is none for so long, or the consumer is closed. For any thread."""
        while not (self._received or self._failure or self._stopped.is_set() or self.is_quiet(quiet_seconds)):
            since = self._quiet_since
            left = quiet_seconds if since is None else since + quiet_seconds - time.monotonic()
            self._arrived.wait(max(0.0, left))
            self._arrived.clear()

    def acknowledge(self, name: str) -> None:
        """Acknowledge a message. One that this connection has not received is ignored: the broker sends it again."""
        self._done.append(name)

    def close(self) -> None:
        """Acknowledge what is done with, and disconnect. The broker keeps all other messages."""
        self._stopped.set()
        self._arrived.set()
        # A broker that does not answer would hold up the end of the launch. It sends again what is not acknowledged.
        self._thread.join(patient(_ENDS_WITHIN_SECONDS))

    # ---- on the thread

    def _run(self) -> None:
        """Receive messages until the consumer is closed; connect again whenever the connection is lost."""
        outage = Outage(f"the broker of the queue {self._queue}{at_host(self._url)}")
        while not self._stopped.is_set():
            lost: tuple[type[Exception], ...] = ()
            try:
                connection = self._connection()
                lost = connection.recoverable_connection_errors + connection.recoverable_channel_errors
                with connection:
                    consumer = self._consumer(connection)
                    outage.is_over()
                    self._serve(connection, consumer)
            except Exception as error:  # noqa: BLE001 - `take` raises it on the thread of the loop
                # Clients count some refusals among the errors that pass, such as an untrusted certificate.
                if not isinstance(error, lost) or _is_refusal(error):
                    self._failure = self._refused(error)
                    self._arrived.set()
                    return
                self._forget()
                self._stopped.wait(outage.failed(str(error)))

    def _connection(self) -> Any:
        """A connection, which is not open yet."""
        try:
            return self._kombu.Connection(self._url, transport_options=self._options, heartbeat=30)
        # The text of the error may contain a part of the password: the failure is raised outside, without that context.
        except (KeyError, ValueError):
            pass
        raise QueueRefused(
            f"the URL of the queue {self._queue} is not valid",
            "begin it with a transport of kombu, such as amqp://; in user and password, write / as %2F and # as %23",
        )

    def _refused(self, error: Exception) -> QueueRefused:
        if isinstance(error, QueueRefused):
            return error
        refused = QueueRefused(f"the broker refuses the queue {self._queue}: {type(error).__name__}: {error}")
        refused.__cause__ = error
        return refused

    def _consumer(self, connection: Any) -> Any:
        channel = connection.channel()
        queue = self._kombu.Queue(self._queue, channel=channel, no_declare=True)
        # Passive: a missing queue is an error, and is not created.
        queue.queue_declare(passive=True)
        consumer = self._kombu.Consumer(channel, [queue], on_message=self._receive, prefetch_count=self._most)
        consumer.consume()
        return consumer

    def _serve(self, connection: Any, consumer: Any) -> None:
        beat = time.monotonic()
        while not self._stopped.is_set():
            try:
                connection.drain_events(timeout=_WAIT_SECONDS)
            except TimeoutError:
                if time.monotonic() - beat > 1:
                    beat = time.monotonic()
                    connection.heartbeat_check()
                if self._watches_for_quiet:
                    self._watch_for_quiet(consumer)
            self._acknowledge_done(consumer)
        self._acknowledge_done(consumer)
        consumer.cancel()
        # Most brokers would do so at the end of the connection. A broker in this process does not.
        for received in chain.from_iterable(self._delivered.values()):
            received.requeue()

    def _watch_for_quiet(self, consumer: Any) -> None:
        with self._delivered_lock:
            unacknowledged = sum(map(len, self._delivered.values()))
        if unacknowledged < self._most:
            may_come = consumer.queues[0].queue_declare(passive=True).message_count > 0
        else:
            # The broker sends the next message after an acknowledgement of one of these.
            may_come = self._commits_acknowledge
        if may_come:
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = time.monotonic()

    def _receive(self, received: Any) -> None:
        delivery = Delivery.of(received)
        with self._delivered_lock:
            self._delivered.setdefault(delivery.message.id if delivery.is_named else "", []).append(received)
        self._quiet_since = None
        self._received.append(delivery)
        self._arrived.set()

    def _acknowledge_done(self, consumer: Any) -> None:
        sent: list[Unnamed] = []
        # An ID stays in `_done` until its acknowledgements are sent. If the connection is lost meanwhile, the message
        # comes again, and is acknowledged then.
        while self._done:
            self._quiet_since = None  # the broker may send others for them
            with self._delivered_lock:
                received, unnamed = self._delivered.pop(self._done[0], ()), self._unnamed.get(self._done[0])
            for message in received:
                message.ack()
            if received and unnamed is not None:
                sent.append(unnamed)
            self._done.popleft()
        # Acknowledgements have no answer. A broker handles the calls of a channel in order, so one that has an answer
        # confirms those before it.
        if sent:
            consumer.queues[0].queue_declare(passive=True)
            for unnamed in sent:
                del self._unnamed[unnamed.id]
            self._confirmed.extend(sent)

    def _forget(self) -> None:
        """Forget what was received on a lost connection: the broker sends it again."""
        self._quiet_since = None
        self._received.clear()
        with self._delivered_lock:
            self._delivered.clear()


def _is_refusal(error: Exception) -> bool:
    """Whether the broker answered, and will answer the same later."""
    return (
        isinstance(error, SSLCertVerificationError)
        or getattr(error, "code", None) in _REFUSALS
        or "NOT_FOUND" in str(error)
    )


_open: dict[tuple[str, str], Consumer] = {}


def connect(url: str, queue: str, most: int, options: Mapping[str, Any], *, commits_acknowledge: bool) -> Consumer:
    """Connect to a queue. A connection that a failed run of this process left is closed: its messages come again."""
    if (url, queue) in _open:
        disconnect(_open[url, queue])
    consumer = Consumer(url, queue, most, options, commits_acknowledge=commits_acknowledge)
    _open[url, queue] = consumer
    return consumer


def disconnect(consumer: Consumer) -> None:
    """Disconnect."""
    for place, known in list(_open.items()):
        if known is consumer:
            del _open[place]
    consumer.close()


def acknowledge(url: str, queue: str, name: str) -> None:
    """Acknowledge a message, if this process is connected to its queue; if not, the broker delivers it again."""
    consumer = _open.get((url, queue))
    if consumer is not None:
        consumer.acknowledge(name)
