"""Failures that end a run, such as an operator's code that raised, with all that locates the failing record."""

import shlex
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from dagkit.api.external import Unavailable
from dagkit.api.secrets import MASK, secrets_in
from dagkit.api.work import is_placed
from dagkit.engine.program.address import SourceKey
from dagkit.engine.program.entrances import record_of, tries_of
from dagkit.errors import InputUnreadable, RunCode, RunFailure, Scene, printable
from dagkit.schema.batch import Batch

_MOST_OF_A_RECORD = 160
"""Characters."""
_WHY_AGAIN = "a batch that fails is sent again in parts, to find the record"


@dataclass(frozen=True, slots=True)
class Spot:
    """The position in its input at which an operator failed; unknown parts are empty."""

    place: str = ""
    """In words, by which the record is found again."""
    source: str | None = None
    """As the ledger knows it."""
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception of an operator's code, in a form that can be sent between processes."""

    operator: str
    window_id: int
    slot: int | None
    """None if the operator ran on the driver."""
    message: str
    """The type and the message of the exception."""
    spot: Spot = Spot()
    """Where the record was read."""
    traceback: str = ""
    """The author's own traceback, as text."""
    record: str = ""
    """The record, shortened, if known."""
    tries: int = 1
    """How often the operator got the record: with others of its batch, and alone so that it is found."""
    attempts: int = 1
    """In how many attempts at the window."""
    raised_at: str = ""
    """The author's file and line at which it was raised, or which called what raised it."""
    aside: SourceKey | None = None
    """The source that is to be set aside instead of ending the run; None: the run ends."""

    def __str__(self) -> str:
        place = f" at {self.spot.place}" if self.spot.place else ""
        where = "on the driver" if self.slot is None else f"slot {self.slot}"
        lines = [f"{self.operator} failed in window {self.window_id}, {where}{place}: {self.message}"]
        lines += [f"  record: {self.record}"] if self.record else []
        if self.tries > 1:
            attempts = f" in {self.attempts} attempts at the window" if self.attempts > 1 else ""
            why = f": {_WHY_AGAIN}" if self.tries > self.attempts else ""
            lines.append(f"  tried {self.tries} times{attempts}{why}")
        lines += [self.traceback.rstrip()] if self.traceback else []
        return "\n".join(lines)


def _help_for(failure: Failure) -> str:
    again = f"fix {failure.operator}; the next launch runs the window again"
    # What an input operator sends on the driver is no work that could be set aside.
    is_searched = failure.record and failure.slot is not None
    return f"{again}. To leave such records out, launch with -D dt.attr.ON_POISON=SET_ASIDE" if is_searched else again


class OperatorFailed(RunFailure):
    """An operator's code raised: where, and on which record.

    If the operator called a part of dagkit that raised, for example because it cannot stage a file, this failure has
    the code, the exit code and the help of that part's failure.
    """

    code: RunCode = "operator-failed"

    def __init__(self, failure: Failure, cause: RunFailure | None = None) -> None:
        spot = failure.spot
        super().__init__(
            # A path that cannot be read is its own place: the user needs neither the window nor a traceback.
            f"{failure.operator} {cause.problem}" if isinstance(cause, InputUnreadable) else str(failure),
            cause.help if cause else _help_for(failure),
            Scene(failure.operator, failure.window_id, failure.slot, spot.source, spot.position),
            code=None if cause is None else cause.code,
        )
        self.failure = failure

    def after(self, tries: int, attempts: int) -> Self:
        """Return the failure with so many tries in all attempts at its window."""
        before, self.failure = str(self.failure), replace(self.failure, tries=tries, attempts=attempts)
        self.problem = self.problem.replace(before, str(self.failure))
        return self

    @property
    def is_away(self) -> bool:
        """Whether the operator raised `Unavailable`: a server does not answer, and the window is tried again."""
        return self.code == Unavailable.code


class WindowLost(RunFailure):
    """A window was lost for a reason outside of the operators, such as a lost machine."""

    code: RunCode = "window-lost"
    usual_help = "launch again to resume after the last committed window"


class WindowAbandoned(BaseException):
    """Ends a window that runs in the driver between two records, when the driver ends. No operator catches it."""


class Interrupted(SystemExit):
    """A signal ends the process at once. It is raised wherever the thread is, also in code of an operator."""


class WorkerDied(WindowLost):
    """The process that ran a part of a window ended: killed by a signal, out of memory, or stopped after a timeout."""

    code: RunCode = "worker-died"
    usual_help = (
        "no single record that it reads is the cause: see the logs and the memory of the worker, and what its "
        "operators do in setup and at the ends of windows; then launch again"
    )


def record_fatal(reader: str, culprits: Sequence[str], spot: Spot, window_id: int, reason: str) -> RunFailure:
    """The search found the record that ends its worker, and the application is to stop.

    `culprits` are the operators that may have ended the process: all that the record may reach if it is not known.
    """
    name, at = spot.source or "", spot.position
    given_up = name if at is None else f"{name}[{at}, {at + 1})"
    ended = f" in {culprits[0]}" if len(culprits) == 1 else ""
    to_correct = culprits[0] if ended else f"the operator, one of {', '.join(culprits)}"
    return RunFailure(
        f"a record that {reader} reads ends its worker{ended}, at {spot.place}: {reason}",
        f"correct {to_correct}, then launch again; or launch with -D dt.attr.ON_POISON=SET_ASIDE to set such records "
        f"aside; or give this one up for good with `dagkit work give-up APP {shlex.quote(given_up)} --at-launch`",
        Scene(culprits[0] if ended else reader, window_id, None, name, at),
        code="record-fatal",
    )


def failure_of(
    error: BaseException,
    operator: str,
    window_id: int,
    slot: int | None = None,
    *,
    spot: Spot = Spot(),
    instance: object = None,
    aside: SourceKey | None = None,
) -> OperatorFailed:
    """Return the failure for an exception of operator code, with the author's traceback if their code caused it.

    A mask replaces each value of a secret property of the operator `instance`.
    """
    from dagkit.conf.sources.references import is_secret_name  # noqa: PLC0415 - workers load it only after a failure

    message = _message_of(error)
    failure = Failure(operator, window_id, slot, message, spot, aside=aside)
    cause = error if isinstance(error, RunFailure) else None
    if cause is None or cause.caused_by_author:
        raised = error if cause is None else error.__cause__ or error  # the author's code raised the cause of a failure
        explains = raised is not cause or _authors_frame(raised) is not None  # the library's own lines explain nothing
        lines = "".join(_from_the_author_on(raised).format()) if explains else ""
        failure = replace(failure, traceback=lines, record="".join(map(shown_record, record_of(error))))
        failure = replace(failure, tries=tries_of(error), raised_at=_authors_line(raised))
    failure = _masked(failure, secrets_in(instance, is_secret_name))
    return OperatorFailed(failure, cause)


def shown_record(record: object) -> str:
    """Return the repr of a record, shortened."""
    try:
        shown = repr(record)
    except Exception:  # noqa: BLE001 - the failure that is reported is another one
        shown = object.__repr__(record)
    return printable(shown if len(shown) <= _MOST_OF_A_RECORD else f"{shown[:_MOST_OF_A_RECORD]}…")


def shown_rejected(item: Any) -> tuple[str, str]:
    """A rejected item as text, shortened, with its reason, and the place where it was read, if the item names these."""
    text, reason = getattr(item, "text", None), getattr(item, "reason", None)
    if not isinstance(text, str) or not isinstance(reason, str):
        return shown_record(item), ""
    path, start = getattr(item, "path", None), getattr(item, "start", None)
    place = f"{path}, byte {start}" if path and start is not None else ""
    return f"{shown_record(text)}: {printable(reason[:_MOST_OF_A_RECORD])}", printable(place)


def _masked(failure: Failure, secrets: Iterable[str]) -> Failure:
    """Return the failure with a mask for each secret. The longest is replaced first: it may contain another."""
    for secret in sorted(secrets, key=len, reverse=True):
        failure = replace(
            failure,
            message=failure.message.replace(secret, MASK),
            record=failure.record.replace(secret, MASK),
            traceback=failure.traceback.replace(secret, MASK),
            spot=replace(failure.spot, place=failure.spot.place.replace(secret, MASK)),
        )
    return failure


def failed_within(error: RunFailure, operator: str, window_id: int, slot: int | None = None) -> OperatorFailed:
    """The failure of an operator that a part of dagkit could not serve."""
    return OperatorFailed(Failure(operator, window_id, slot, _message_of(error)), error)


def _message_of(error: BaseException) -> str:
    if isinstance(error, RunFailure):
        return f"{error.named}: {error.problem}"
    return "".join(traceback.format_exception_only(error)).strip()


class CodecFailed(RunFailure):
    """The stream codec of an input raised the cause of this."""

    code = "codec-failed"
    usual_help = "fix the stream codec, or the item; the next launch runs the window again"

    def __init__(self, receiver: str) -> None:
        super().__init__(f"the stream codec of {receiver} failed")
        self.receiver = receiver

    def in_window(self, window_id: int, slot: int | None = None) -> OperatorFailed:
        """Return the failure of the operator that the codec belongs to, with the traceback of the codec."""
        assert self.__cause__ is not None, "a codec raised it"
        failure = failure_of(self.__cause__, self.receiver, window_id, slot).failure
        return OperatorFailed(replace(failure, message=f"CodecFailed: {failure.message}"), self)


def _from_the_author_on(error: BaseException) -> traceback.TracebackException:
    """Return the traceback from the author's first frame on, or from the operator library's if no author's code ran."""
    lines = traceback.TracebackException.from_exception(error)
    authors = _authors_frame(error)
    others = (index for index, package in enumerate(_packages(error)) if package != "dagkit")
    del lines.stack[: next(others, 0) if authors is None else authors]
    return lines


def _authors_line(error: BaseException) -> str:
    """The file and line of the first frame of the author's code; empty if none of it ran."""
    index = _authors_frame(error)
    if index is None:
        return ""
    frame, line = list(traceback.walk_tb(error.__traceback__))[index]
    return printable(f"{frame.f_code.co_filename}:{line}")


def _authors_frame(error: BaseException) -> int | None:
    """Return the index of the first frame of the author's code in the traceback; None if none of it ran."""
    packages = enumerate(_packages(error))
    return next((index for index, package in packages if package not in ("dagkit", "dagkit_operators")), None)


def _packages(error: BaseException) -> list[str]:
    """Return the package of each frame of the traceback."""
    frames = traceback.walk_tb(error.__traceback__)
    return [frame.f_globals.get("__name__", "").partition(".")[0] for frame, _ in frames]


def spot_of(element: Any, offset: int | None) -> Spot:
    """Return the position of a record in the element being processed; an empty spot if there is no element."""
    if element is None:
        return Spot()
    if is_placed(element):
        return Spot(printable(element.place(offset)), element.source, offset)
    position = "" if offset is None else f", position {offset}"
    return Spot(printable(f"element {element!r:.80}{position}"), position=offset)


def offsets_in(batch: Batch[Any]) -> Sequence[int] | None:
    """Return the byte position at which each item of a batch starts in its source, if the batch records it."""
    known = (column.starts() for column in batch.columns.values())
    return next((starts for starts in known if starts is not None), None)
