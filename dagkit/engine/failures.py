"""What stops a run: an author's code that failed, told with everything that finds the record that it failed on."""

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
"""Where dagkit lies."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """What an operator's code raised, as it is told from process to process."""

    operator: str
    window_id: int
    slot: int | None
    """None where it ran on the driver."""
    told: str
    """The type and the words of what was raised."""
    place: str = ""
    """The source and the position of the record in words, where they are known."""
    traceback: str = ""
    """The author's own traceback, as text."""
    record: str = ""
    """The record, shortened, where it is known."""

    def __str__(self) -> str:
        place = f" at {self.place}" if self.place else ""
        where = "on the driver" if self.slot is None else f"slot {self.slot}"
        lines = [f"{self.operator} failed in window {self.window_id}, {where}{place}: {self.told}"]
        lines += [f"  record: {self.record}"] if self.record else []
        lines += [self.traceback.rstrip()] if self.traceback else []
        return "\n".join(lines)


class OperatorFailed(RunFailure):
    """An operator's code raised: where, and on which record.

    Where a part of dagkit that the operator called raised, such as a file that cannot be staged, this failure has the
    code and the help of that part's.
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
    """A window was lost for a reason outside of the operators, such as a machine that went away."""

    code: RunCode = "window-lost"
    usual_help: ClassVar[str] = "launch again to resume after the last committed window"


class WorkerFailed(RunFailure):
    """A worker could not begin or end its part of a window."""

    code = "worker-failed"
    usual_help: ClassVar[str] = "fix this, then launch again to resume after the last committed window"


def failure_of(
    error: BaseException, operator: str, window_id: int, slot: int | None = None, place: str = ""
) -> OperatorFailed:
    """What an operator's code raised, with the author's traceback where that tells more than its words."""
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
    """A stream codec raised what this was raised from, in a window that whoever catches it knows."""

    def __init__(self, receiver: str) -> None:
        super().__init__(receiver)
        self.receiver = receiver

    def told(self, window_id: int, slot: int | None = None) -> OperatorFailed:
        """The failure of the operator."""
        assert self.__cause__ is not None, "a codec raised it"
        return failure_of(self.__cause__, self.receiver, window_id, slot)


def _from_the_author_on(error: BaseException) -> traceback.TracebackException:
    """The traceback without the frames of dagkit that led into code of others; all of it where nobody else's ran."""
    told = traceback.TracebackException.from_exception(error)
    others = (i for i, frame in enumerate(told.stack) if not Path(frame.filename).is_relative_to(_OWN))
    del told.stack[: next(others, 0)]
    return told


def who_failed(raised: TracebackType | None, operators: Mapping[str, Operator]) -> str | None:
    """The operator whose method was running when something was raised: the last of those that the traceback passes.

    It is the `self` of a frame: its method's own, or that of a function that acts for it.
    """
    names = {id(operator): name for name, operator in operators.items()}
    found = None
    while raised is not None:
        found = names.get(id(raised.tb_frame.f_locals.get("self")), found)
        raised = raised.tb_next
    return found


def tear_down(operators: Iterable[Operator], window_id: int) -> None:
    """What was set up lets go of what it holds, though the window failed; what this raises is only logged."""
    for operator in operators:
        try:
            operator.deactivate()
            operator.teardown()
        except Exception:  # the failure that brought us here is the one to be told
            _logger.exception("%s could not be torn down after window %d failed", type(operator).__name__, window_id)


def place_of(element: Any, offset: int | None) -> str:
    """How a record is found again, in the words of the element that was worked on; without one, nothing is known."""
    if element is None:
        return ""
    if is_placed(element):
        return printable(element.place(offset))
    position = "" if offset is None else f", position {offset}"
    return printable(f"element {element!r:.80}{position}")


def offsets_in(batch: Batch[Any]) -> Sequence[int] | None:
    """At which bytes of what was read the items of a batch start, where the batch knows."""
    known = (column.starts() for column in batch.columns.values())
    return next((starts for starts in known if starts is not None), None)


def failing_among(count: int, send: Callable[[int], object], first: Exception) -> int | None:
    """Which of several it is that somebody fails on as he did: the attempt is lost, so each is sent again by itself.

    Who has state may fail otherwise on what he saw before.
    """
    for index in range(count):
        try:
            send(index)
        except Exception as error:  # noqa: BLE001 - the first error goes on
            if (type(error), str(error)) == (type(first), str(first)):
                return index
    return None
