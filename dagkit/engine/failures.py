"""Failures that end a run, such as an operator's code that raised, with all that locates the failing record."""

import logging
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from dagkit.api.operators import NotYielded, Operator
from dagkit.api.work import is_placed
from dagkit.errors import InputUnreadable, RunCode, RunFailure, Scene, printable
from dagkit.schema.batch import Batch

_OWN = Path(__file__).parents[1]
"""The folder of the dagkit package."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception of an operator's code, in a form that can be sent between processes."""

    operator: str
    window_id: int
    slot: int | None
    """None if the operator ran on the driver."""
    told: str
    """The type and the message of the exception."""
    place: str = ""
    """The source and the position of the record as text, if known."""
    traceback: str = ""
    """The author's own traceback, as text."""
    record: str = ""
    """The record, shortened, if known."""

    def __str__(self) -> str:
        place = f" at {self.place}" if self.place else ""
        where = "on the driver" if self.slot is None else f"slot {self.slot}"
        lines = [f"{self.operator} failed in window {self.window_id}, {where}{place}: {self.told}"]
        lines += [f"  record: {self.record}"] if self.record else []
        lines += [self.traceback.rstrip()] if self.traceback else []
        return "\n".join(lines)


class OperatorFailed(RunFailure):
    """An operator's code raised: where, and on which record.

    If the operator called a part of dagkit that raised, for example because it cannot stage a file, this failure has
    the code and the help of that part's failure.
    """

    code: RunCode = "operator-failed"

    def __init__(self, failure: Failure, cause: RunFailure | None = None) -> None:
        super().__init__(
            str(failure),
            cause.help if cause else f"fix {failure.operator}, or the record; the next launch runs the window again",
            Scene(failure.operator, failure.window_id, failure.slot),
        )
        self.failure = failure
        if cause is not None:
            self.code = cause.code


class InputRefused(OperatorFailed):
    """An operator cannot read its input."""

    code: RunCode = "input-unreadable"
    exit_code: ClassVar[int] = InputUnreadable.exit_code

    def __init__(self, failure: Failure, cause: InputUnreadable) -> None:
        super().__init__(failure, cause)
        self.problem = f"{failure.operator} {cause.problem}"


class WindowLost(RunFailure):
    """A window was lost for a reason outside of the operators, such as a lost machine."""

    code: RunCode = "window-lost"
    usual_help: ClassVar[str] = "launch again to resume after the last committed window"


class WorkerFailed(RunFailure):
    """A worker could not begin or end its part of a window."""

    code = "worker-failed"
    usual_help: ClassVar[str] = "fix this, then launch again to resume after the last committed window"


def failure_of(
    error: BaseException, operator: str, window_id: int, slot: int | None = None, place: str = ""
) -> OperatorFailed:
    """Return the failure for an exception of operator code, with the author's traceback unless dagkit raised it."""
    told = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, InputUnreadable):
        return InputRefused(Failure(operator, window_id, slot, told, place), error)
    if isinstance(error, RunFailure):
        return OperatorFailed(Failure(operator, window_id, slot, _told_of(error), place), error)
    if isinstance(error, NotYielded):
        return OperatorFailed(Failure(operator, window_id, slot, str(error), place))
    lines = "".join(_from_the_author_on(error).format())
    return OperatorFailed(Failure(operator, window_id, slot, told, place, lines))


def failed_within(error: RunFailure, operator: str, window_id: int, slot: int | None = None) -> OperatorFailed:
    """The failure of an operator that a part of dagkit could not serve."""
    return OperatorFailed(Failure(operator, window_id, slot, _told_of(error)), error)


def _told_of(error: RunFailure) -> str:
    return f"{type(error).__name__}: {error.problem}"


class CodecFailed(Exception):
    """A stream codec raised the cause of this; the code that catches this knows the window."""

    def __init__(self, receiver: str) -> None:
        super().__init__(receiver)
        self.receiver = receiver

    def told(self, window_id: int, slot: int | None = None) -> OperatorFailed:
        """Return the failure of the operator that the codec belongs to."""
        assert self.__cause__ is not None, "a codec raised it"
        return failure_of(self.__cause__, self.receiver, window_id, slot)


def _from_the_author_on(error: BaseException) -> traceback.TracebackException:
    """Return the traceback from the first frame outside dagkit on; the whole traceback if all frames are dagkit's."""
    told = traceback.TracebackException.from_exception(error)
    others = (i for i, frame in enumerate(told.stack) if not Path(frame.filename).is_relative_to(_OWN))
    del told.stack[: next(others, 0)]
    return told


def who_failed(raised: TracebackType | None, operators: Mapping[str, Operator]) -> str | None:
    """Return the name of the last operator in a traceback: its method was running when the exception was raised.

    An operator is recognised as the `self` of a frame: of its own method, or of a function that acts for it.
    """
    names = {id(operator): name for name, operator in operators.items()}
    found = None
    while raised is not None:
        found = names.get(id(raised.tb_frame.f_locals.get("self")), found)
        raised = raised.tb_next
    return found


def tear_down(operators: Iterable[Operator], window_id: int) -> None:
    """Tear down operators after a failed window, so that they release their resources; log what they raise."""
    for operator in operators:
        try:
            operator.deactivate()
            operator.teardown()
        except Exception:  # the failure of the window is the one to report
            _logger.exception("%s could not be torn down after window %d failed", type(operator).__name__, window_id)


def place_of(element: Any, offset: int | None) -> str:
    """Describe the position of a record in the element being processed; return "" if there is no element."""
    if element is None:
        return ""
    if is_placed(element):
        return printable(element.place(offset))
    position = "" if offset is None else f", position {offset}"
    return printable(f"element {element!r:.80}{position}")


def offsets_in(batch: Batch[Any]) -> Sequence[int] | None:
    """Return the byte position at which each item of a batch starts in its source, if the batch records it."""
    known = (column.starts() for column in batch.columns.values())
    return next((starts for starts in known if starts is not None), None)


def failing_among(count: int, send: Callable[[int], object], first: Exception) -> int | None:
    """Return the index of the item that raises the same error as `first`, or None.

    The attempt is lost already, so each item is sent again alone. An operator with state may fail differently on an
    item that it has seen before.
    """
    for index in range(count):
        try:
            send(index)
        except Exception as error:  # noqa: BLE001 - the first error goes on
            if (type(error), str(error)) == (type(first), str(first)):
                return index
    return None
