"""The connection of a slot to the board, over TCP. If anything fails, it is cut, and the slot works without it."""

import logging
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from threading import Condition, Thread
from typing import Final

from dagkit.engine.program.address import Address
from dagkit.engine.work.handover import (
    LONGEST_LINE,
    Asked,
    BoardLink,
    BoardPlace,
    FromSlot,
    Given,
    Giver,
    Handed,
    Handover,
    Hello,
    Idle,
    Message,
    Progressed,
    line_of,
    message_in,
)
from dagkit.ground.clock import patient

BEAT_SECONDS: Final = 0.1
"""How often a slot reports its progress."""
WATCHED_AFTER_SECONDS: Final = 0.5
"""A slot that hands no work over connects after this time, only to report its progress: most windows end before."""
CONNECTED_WITHIN_SECONDS: Final = 0.5
"""The longest time for a connection: an idle slot waits for it."""
SENT_WITHIN_SECONDS: Final = 2.0
"""The longest time for sending one message."""
_LOOKS_SECONDS: Final = 0.05
"""How often a waiting slot looks whether its time is over."""

_logger = logging.getLogger(__name__)


class SlotLink(BoardLink):
    """The connection of one slot and input."""

    def __init__(
        self,
        place: BoardPlace,
        into: Address,
        slot: int,
        *,
        hands_over: bool = True,
        shares: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        """Take where the board is; for `shares` see `Standing`."""
        self._place = place
        self._shares = shares
        self.hands_over = hands_over
        self._hello = Hello(place.token, place.window, into, slot)
        self._changed = Condition()
        """Guards everything below. It is notified when an idle slot gets an answer, or when the connection is cut."""
        self._giver: Giver | None = None
        self._socket: socket.socket | None = None
        self._is_idle = False
        self._idle_millis = 0.0
        """The time of all waits that have ended."""
        self._idle_since: float | None = None
        """When the present wait began."""
        self._taken: Handover | None = None
        self._is_cut = False

    @property
    def is_up(self) -> bool:
        return self.hands_over and self._socket is not None and not self._is_cut

    def open(self, giver: Giver) -> None:
        """Connect in the background: the slot does not wait for it."""
        self._giver = giver
        Thread(target=self._serve, args=(giver,), name="board", daemon=True).start()

    @property
    def idle_millis(self) -> float:
        # Without the lock: the handler of the sampling timer calls this, and must not wait for the thread of the link.
        since = self._idle_since
        return self._idle_millis + (0.0 if since is None else (time.monotonic() - since) * 1000)

    def more(self, until: Callable[[], bool]) -> Handover | None:
        self._idle_since = time.monotonic()
        try:
            return self._awaited(until)
        finally:
            self._idle_millis, self._idle_since = self.idle_millis, None

    def _awaited(self, until: Callable[[], bool]) -> Handover | None:
        with self._changed:
            if self._is_cut or not self.hands_over:
                return None
            self._is_idle = True
            self._send(Idle())
            while self._waits() and not until():
                # The end of the time of a window notifies no thread, so the slot looks for it.
                self._changed.wait(_LOOKS_SECONDS)
            taken, self._taken = self._taken, None
            return taken

    def close(self) -> None:
        # The driver shows these positions until the window ends.
        if self._socket is not None and self._giver is not None:
            self._send(self._progress(self._giver))
        self._cut()

    def _waits(self) -> bool:
        return self._is_idle and not self._is_cut

    def _serve(self, giver: Giver) -> None:
        """Report progress and answer the driver until the connection is cut."""
        try:
            if not self.hands_over and self._ends_within(WATCHED_AFTER_SECONDS):
                return
            self._connect()
            buffer = bytearray()
            while not self._is_cut:
                for line in self._lines(buffer):
                    self._take(message_in(line), giver)
                self._send(self._progress(giver))
        except (OSError, ValueError) as error:
            _logger.debug("the board is not reached: %s", error)
        finally:
            self._cut()
            if self._socket is not None:
                self._socket.close()

    def _progress(self, giver: Giver) -> Progressed:
        return Progressed(replace(giver.standing(), shares=self._shares()))

    def _ends_within(self, seconds: float) -> bool:
        """Wait until the slot has ended its work, at most this long; return whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_cut, seconds)

    def _connect(self) -> None:
        place = self._place.host, self._place.port
        connection = socket.create_connection(place, patient(CONNECTED_WITHIN_SECONDS))
        connection.settimeout(patient(SENT_WITHIN_SECONDS))
        # Each message is small, and the other side waits for it: none is held back to fill a packet.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._changed:
            if self._is_cut:  # the slot ended its work meanwhile
                connection.close()
                return
            self._socket = connection
            self._send(self._hello)
            if self._is_idle:  # it has no more work, and its message found no connection
                self._send(Idle())

    def _lines(self, buffer: bytearray) -> list[bytes]:
        """Wait for messages, at most until the next report is due."""
        connection = self._socket
        if connection is None:
            return []
        with selectors.DefaultSelector() as selector:  # `select` refuses descriptors from 1024 on
            selector.register(connection, selectors.EVENT_READ)
            if not selector.select(BEAT_SECONDS):
                return []
        data = connection.recv(1 << 16)
        if not data or len(buffer) > LONGEST_LINE:
            raise ConnectionError("the driver closed the connection")
        buffer += data
        *lines, rest = bytes(buffer).split(b"\n")
        buffer[:] = rest
        return lines

    def _take(self, message: Message, giver: Giver) -> None:
        if isinstance(message, Asked):
            self._send(Given(giver.give() if self.hands_over else None))
            return
        with self._changed:
            self._is_idle = False
            self._taken = message.handover if isinstance(message, Handed) else None
            self._changed.notify_all()

    def _send(self, message: FromSlot) -> None:
        with self._changed:
            if self._socket is not None and not self._is_cut:
                try:
                    self._socket.sendall(line_of(message))
                except OSError:
                    self._cut()

    def _cut(self) -> None:
        with self._changed:
            self._is_cut = True
            if self._socket is not None:
                with suppress(OSError):  # the driver closed it first
                    self._socket.shutdown(socket.SHUT_RDWR)
            self._changed.notify_all()
