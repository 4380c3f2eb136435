"""The output of operators, printed or logged, while a slot runs: it also goes to the log of the drivers.

Slots on the driver's machine append lines to that log themselves, so that they are in it although the process ends. The
lines of others come with the report of the window.
"""

import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import FrameType
from typing import Any, TextIO, cast

from dagkit.ground.forks import over_forks
from dagkit.ground.urls import is_url

LOG = "logs/driver.log"
"""The log of an application's drivers, in its folder."""
LONGEST_BYTES = 10_000_000
"""The length from which the driver begins another file."""
_MOST_BYTES = 4 * LONGEST_BYTES
"""The length of a file from which slots append nothing: the driver renames it only between two of its own lines."""
_LONGEST_LINE = 10_000
"""Characters."""
MOST_REPORTED = 1000
"""How many lines a slot on another machine reports of a window."""
_LOOK_EVERY = 100
"""After how many lines a slot looks whether the log is another file."""


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where slots find the log."""

    path: str
    host: str
    """The machine of the driver. Slots elsewhere append nothing: not every shared folder appends in one step."""
    level: int = logging.WARNING
    """The level of the root logger of the driver. Workers that import no module which sets one have it, too."""


def log_in(application_path: str) -> LogPlace | None:
    """The place of the log in an application's folder; None in an object store, which appends nothing."""
    if not application_path or is_url(application_path):
        return None
    path = os.path.join(application_path, LOG)  # noqa: PTH118 - workers start fast
    return LogPlace(path, socket.gethostname(), logging.getLogger().level)


@dataclass
class SlotOutput:
    """The output of one slot in one window."""

    place: LogPlace
    application: str
    window_id: int
    operators: Mapping[int, str]
    """The names of its operators, by the identity of each instance."""
    hide: Callable[[str], str]
    """Masks secrets."""
    takes_records: bool = True
    """Whether records of `logging` are appended, too. In the driver's process, a handler of the driver does that; in a
    worker no handler does, because `logging.basicConfig` does nothing once there is one."""
    reported: list[str] = field(default_factory=list)
    """The lines of a slot on another machine, which the driver appends."""
    is_muted: bool = False
    """Whether records are sent again only to find the one that fails: their output was printed before."""
    _unended: dict[str, str] = field(default_factory=dict)
    """The beginning of a line, by stream."""
    _file: int | None = None
    _lines: int = 0
    _unreported: int = 0

    def written(self, stream: str, text: str, frame: FrameType) -> None:
        """Append the lines that a text ends; `frame` wrote it."""
        *lines, rest = (self._unended.pop(stream, "") + text).split("\n")
        if rest:
            self._unended[stream] = rest
        if lines:
            operator = self._operator_at(frame)
            for line in lines:
                self._append("printed", "info", stream, operator, line)

    def logged(self, record: logging.LogRecord) -> None:
        """Append a record, if the driver does not."""
        if self.takes_records and not self.is_muted:
            text = logging.Formatter().format(record)
            self._append("logged", record.levelname.lower(), record.name, self._operator_at(sys._getframe(1)), text)  # noqa: SLF001 - there is no other way

    def scope(self) -> dict[str, Any]:
        """The window, and the operator whose code runs now, as fields of a line."""
        return self._scope_of(self._operator_at(sys._getframe(1)))  # noqa: SLF001 - there is no other way

    def _scope_of(self, operator: str | None) -> dict[str, Any]:
        return {"window": self.window_id} | ({} if operator is None else {"operator": operator})

    def end(self) -> None:
        """Append the lines that have no line break, and close the log."""
        for stream, rest in self._unended.items():
            self._append("printed", "info", stream, None, rest)
        self._unended.clear()
        if self._unreported:
            more = f"and {self._unreported} more lines, which are in the standard error of its executor"
            self.reported.append(self._line("printed", "warning", "dagkit", None, more))
        self._close()

    def _operator_at(self, frame: FrameType | None) -> str | None:
        while frame is not None:
            if frame.f_code.co_varnames[:1] == ("self",):
                values = frame.f_locals
                name = self.operators.get(id(values.get("self")))
                if isinstance(values, dict):
                    # Before Python 3.13, the frame keeps this copy: a buffer of which it holds a view could not grow.
                    values.clear()
                if name is not None:
                    return name
            frame = frame.f_back
        return None

    def _append(self, event: str, level: str, logger: str, operator: str | None, text: str) -> None:
        if self._lines % _LOOK_EVERY == 0:
            self._open()
        self._lines += 1
        if self._file is not None:
            with suppress(OSError):  # a full disk: the driver warns
                os.write(self._file, _written(self._line(event, level, logger, operator, text)))
        elif not self._is_here and len(self.reported) < MOST_REPORTED:
            self.reported.append(self._line(event, level, logger, operator, text))
        elif not self._is_here:
            self._unreported += 1

    def _line(self, event: str, level: str, logger: str, operator: str | None, text: str) -> str:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"ts": at, "level": level, "logger": logger, "app": self.application, "event": event}
        fields = {**line, **self._scope_of(operator), "message": self.hide(text[:_LONGEST_LINE])}
        return json.dumps(fields, ensure_ascii=False)

    @property
    def _is_here(self) -> bool:
        return self.place.host == socket.gethostname()

    def _open(self) -> None:
        """Open the log, unless it is elsewhere, there is none, or it is too long."""
        self._close()
        if self._is_here:
            self._file = _opened(self.place.path)

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _opened(path: str) -> int | None:
    """A log for appending; None if there is none, or it is too long."""
    with suppress(OSError):
        # Not created here: the driver begins each log, and renames a long one.
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        if os.fstat(file).st_size < _MOST_BYTES:
            return file
        os.close(file)
    return None


def _written(line: str) -> bytes:
    return f"{line}\n".encode(errors="surrogatepass")


def append(place: LogPlace | None, lines: Iterable[str]) -> None:
    """Append the lines that slots on other machines reported to the log of the driver."""
    lines = list(lines)
    file = _opened(place.path) if place is not None and lines else None
    if file is not None:
        with suppress(OSError):  # a full disk: the driver warns
            os.write(file, b"".join(map(_written, lines)))
        os.close(file)


_running: dict[int, SlotOutput] = {}
"""The output of the slot that each thread runs."""
# The reference forks for a window while the driver looks for input.
_changing = over_forks(threading.Lock())


def present() -> SlotOutput | None:
    """The output of the slot that this thread runs."""
    return _running.get(threading.get_ident())


@contextmanager
def captured(output: SlotOutput | None) -> Iterator[None]:
    """Within the block, append the output of this thread to the log."""
    if output is None:
        yield
        return
    thread = threading.get_ident()
    # Streams and the factory of records belong to the process, in which several threads may run slots.
    with _changing:
        _running[thread] = output
        _tee()
        if output.takes_records:
            _take_records(output.place.level)
    try:
        yield
    finally:
        with _changing:
            del _running[thread]
            if not _running:
                _untee()
        output.end()


@contextmanager
def muted() -> Iterator[None]:
    """Within the block, drop the output of this thread in a slot: the thread printed it before."""
    output = present()
    if output is None or output.is_muted:
        yield
        return
    output.is_muted = True
    try:
        yield
    finally:
        output.is_muted = False


class _Tee:
    """A standard stream whose text is captured, too, where a slot writes it."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self.stream = stream
        self._name = name

    def write(self, text: str) -> int:
        output = present()
        if output is not None:
            if output.is_muted:
                return len(text)
            frame = sys._getframe(1)  # noqa: SLF001 - there is no other way
            if not _is_in_logging(frame):  # a handler writes a record, which is captured itself
                output.written(self._name, text, frame)
        return self.stream.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _is_in_logging(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_globals.get("__name__") != "logging":
        frame = frame.f_back
    return frame is not None


def _made(*args: Any, **kwargs: Any) -> logging.LogRecord:
    """Make a record, and append it to the log if a slot logs it."""
    record, output = _make(*args, **kwargs), present()
    if output is not None:
        output.logged(record)
    return record


_make = logging.getLogRecordFactory()
"""Makes records while no slot runs."""


def _take_records(level: int) -> None:
    global _make  # noqa: PLW0603 - as the streams and the factory are those of the process
    if logging.getLogRecordFactory() is not _made:
        _make = logging.getLogRecordFactory()
        logging.setLogRecordFactory(_made)
    root = logging.getLogger()
    if not root.handlers and root.level == logging.WARNING:  # nothing has set it up
        root.setLevel(level)


def _tee() -> None:
    if not isinstance(sys.stdout, _Tee):
        sys.stdout = cast("TextIO", _Tee(sys.stdout, "stdout"))
    if not isinstance(sys.stderr, _Tee):
        sys.stderr = cast("TextIO", _Tee(sys.stderr, "stderr"))


def _untee() -> None:
    if logging.getLogRecordFactory() is _made:
        logging.setLogRecordFactory(_make)
    if isinstance(sys.stdout, _Tee):
        sys.stdout = sys.stdout.stream
    if isinstance(sys.stderr, _Tee):
        sys.stderr = sys.stderr.stream
