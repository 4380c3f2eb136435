"""The board on the driver: a TCP server for the slots of all windows in flight."""

import logging
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Lock, Thread
from typing import Final

from dagkit.engine.program.address import Address
from dagkit.engine.work.handover import (
    LONGEST_LINE,
    BoardPlace,
    Given,
    Hello,
    Idle,
    Message,
    Progressed,
    SlotStanding,
    Standing,
    ToSlot,
    line_of,
    message_in,
)
from dagkit.engine.worker.board import Board, Move
from dagkit.ground.clock import patient

# Any process that reaches the port may send one; only its token shows that a slot does.
LONGEST_HELLO: Final = 4096
"""The longest first message in bytes."""
SILENT_SECONDS: Final = 10.0
"""After this time without a message the connection of a slot is cut. Idle slots send messages, too."""
PATIENCE: Final = 10
"""For how many reports idle slots wait for others to begin that have a core: for about a second."""

_logger = logging.getLogger(__name__)
_Seat = tuple[Address, int]
"""An input and a slot."""


@dataclass(frozen=True)
class _Line:
    """The connection to one slot."""

    connection: socket.socket
    sending: Lock = field(default_factory=Lock)
    """Held while a message is sent: a slow slot delays only those who send to it."""


@dataclass
class _Window:
    """The slots of one attempt at a window."""

    window_id: int
    boards: Mapping[Address, Board]
    first: frozenset[Address]
    """The inputs whose slots are the first to run."""
    connections: dict[_Seat, "_Line"] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Whether one of its slots waits for a core."""
        return any(len(board.begun) < board.slots for into, board in self.boards.items() if into in self.first)


class BoardServer:
    """The board of one backend. `host` is the name at which slots reach this machine."""

    def __init__(self, host: str, bind: str) -> None:
        self._host = host
        self._token = secrets.token_hex(16)
        self._lock = Lock()
        """Guards the windows and their boards."""
        self._windows: dict[str, _Window] = {}
        self._server = _Server((bind, 0), partial(_Connection, self), bind_and_activate=True)
        Thread(target=self._server.serve_forever, name="board", daemon=True).start()

    @contextmanager
    def window(
        self, window_id: int, slots: Mapping[Address, int], first: frozenset[Address], cores: int
    ) -> Iterator[BoardPlace]:
        """Serve an attempt at a window, with this number of slots of each input; slots of `first` need no exchange."""
        name = secrets.token_hex(8)
        with self._lock:
            boards = {
                # With more slots than cores, a slot that has not begun may wait for the core of an idle one.
                into: Board(count, PATIENCE if count <= cores else 0, partial(self._others_wait, name))
                for into, count in slots.items()
            }
            window = self._windows[name] = _Window(window_id, boards, first)
        try:
            yield BoardPlace(self._host, self._server.server_address[1], self._token, name)
        finally:
            with self._lock:
                del self._windows[name]
                for line in window.connections.values():
                    _shut(line.connection)

    def is_reached(self, place: BoardPlace) -> bool:
        """Whether a slot of this attempt at a window has connected."""
        with self._lock:
            return any(board.begun for board in self._windows[place.window].boards.values())

    def running(self) -> list[SlotStanding]:
        """The last report of each slot, in all windows; for a slot that has ended, only the positions that it did."""
        with self._lock:
            return [
                SlotStanding(window.window_id, into, slot, board.busy.get(slot, Standing(done=done)))
                for window in self._windows.values()
                for into, board in window.boards.items()
                for slot, done in board.done.items()
            ]

    def close(self) -> None:
        """Cut all connections and accept no more."""
        Thread(target=self._server.shutdown, daemon=True).start()  # it waits until the server looks
        self._server.server_close()
        with self._lock:
            for window in self._windows.values():
                for line in window.connections.values():
                    _shut(line.connection)

    def _others_wait(self, name: str) -> bool:
        return any(window.waits for other, window in self._windows.items() if other != name)

    # ---- called by connections

    def begin(self, hello: Message, connection: socket.socket) -> "_Window | None":
        """Return the window of a slot that begins; None if it gets no place."""
        # In constant time, so that the time of an answer does not show how much of a guessed token is right.
        if not isinstance(hello, Hello) or not secrets.compare_digest(hello.token.encode(), self._token.encode()):
            return None
        with self._lock:
            window = self._windows.get(hello.window)
            board = None if window is None else window.boards.get(hello.into)
            if window is None or board is None or not board.begin(hello.slot):
                return None
            window.connections[hello.into, hello.slot] = _Line(connection)
            return window

    def take(self, window: _Window, seat: _Seat, message: Message) -> None:
        """Take a message of a slot, and send the messages that follow from it."""
        into, slot = seat
        board = window.boards[into]
        with self._lock:
            match message:
                case Progressed(standing):
                    moves = board.progressed(slot, standing)
                case Idle():
                    moves = board.idle(slot)
                case Given(handover):
                    moves = board.answered(slot, handover)
                case _:
                    raise ValueError(f"a slot does not send {message.kind}")
        # Without the lock: a slot that takes its messages slowly would hold up the slots of all windows.
        self._send(window, into, moves)

    def end(self, window: _Window, seat: _Seat) -> None:
        """Note that a slot has ended, or that its connection was cut."""
        into, slot = seat
        with self._lock:
            moves = window.boards[into].end(slot)
        self._send(window, into, moves)

    def _send(self, window: _Window, into: Address, moves: list[Move]) -> None:
        """Send messages. If a slot does not accept one, its connection is cut, and its thread ends it on the board.

        Messages to a slot may overtake each other: it answers an Asked that comes late as any other.
        """
        for slot, message in moves:
            line = window.connections[into, slot]
            try:
                with line.sending:
                    self.deliver(line.connection, message)
            except OSError:
                _shut(line.connection)

    def deliver(self, connection: socket.socket, message: ToSlot) -> None:
        """Send one message to a slot. Raise OSError if it does not accept it."""
        connection.sendall(line_of(message))


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):  # the slot closed it first
        connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingTCPServer):
    daemon_threads = True
    # All slots of a window connect at the same moment. By default, five connections may wait.
    request_queue_size = 128


class _Connection(StreamRequestHandler):
    """The connection of one slot."""

    disable_nagle_algorithm = True

    def __init__(self, board: BoardServer, *given: object) -> None:
        self.board = board
        super().__init__(*given)  # type: ignore[arg-type] # as the server passes it

    def setup(self) -> None:
        self.request.settimeout(patient(SILENT_SECONDS))
        super().setup()

    def handle(self) -> None:
        try:
            hello = message_in(self.rfile.readline(LONGEST_HELLO))
            window = self.board.begin(hello, self.connection)
            if window is None or not isinstance(hello, Hello):
                return
            try:
                self._serve(window, (hello.into, hello.slot))
            finally:
                self.board.end(window, (hello.into, hello.slot))
        except (OSError, ValueError) as error:
            _logger.debug("a slot was cut off the board: %s", error)

    def _serve(self, window: _Window, seat: _Seat) -> None:
        while line := self.rfile.readline(LONGEST_LINE):
            self.board.take(window, seat, message_in(line))
