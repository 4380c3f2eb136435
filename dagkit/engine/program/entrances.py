"""Entrances to the code of operators: each keeps on an exception the operator that raised it, and the record.

A failure is reported from this note: no frame of a traceback is searched for an operator. An entrance is a `try` around
the call, which costs nothing until something is raised.

The functions through which items reach an operator have a code object for each operator, so that a sample of the stack
finds the operator that works, at no cost for an item. The variables of frames would name it, too. But before Python
3.13, reading them keeps all values of the frame alive, and a buffer that is exported cannot be resized.
"""

import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar, cast

from dagkit.engine.program.operator_output import muted
from dagkit.errors import RunFailure
from dagkit.schema.batch import Batch

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_OPERATOR, _RECORD = "_dagkit_operator", "_dagkit_record"
"""Attributes of an exception on its way: in whose code it was raised, and on which record."""
_SEARCH, _TRIES = "_dagkit_search", "_dagkit_tries"
"""Others: how to find the record, and how often the operator got it."""


_own_codes: dict[tuple[int, str], CodeType] = {}
"""The code objects that were made, by the identity of the original and the operator. Originals are never freed."""
_operators: dict[int, str] = {}
"""The operator of each of them, by its identity: equal code would be one key."""


class _Sender(threading.local):
    """The batch that this thread sends."""

    finds = False
    """Whether the sender of the present batch finds the record if it fails."""


_sender = _Sender()


def entrance(operator: str, function: F) -> F:
    """Return the same function of dagkit with a code object for this operator, by which `operator_at` finds it."""
    assert isinstance(function, FunctionType), "an entrance is written in Python"
    key = id(function.__code__), operator
    own = _own_codes.get(key) or _own_codes.setdefault(key, function.__code__.replace())
    _operators[id(own)] = operator
    name, defaults, closure = function.__name__, function.__defaults__, function.__closure__
    return cast("F", FunctionType(own, function.__globals__, name, defaults, closure))


def operator_at(frame: FrameType | None, among: Container[str]) -> str | None:
    """Return which of these operators' code a frame runs; None if its stack has no entrance to one of them."""
    while frame is not None:
        operator = _operators.get(id(frame.f_code))
        if operator is not None and operator in among:
            return operator
        frame = frame.f_back
    return None


def note(error: Exception, operator: str, *record: object) -> None:
    """Keep on an exception the operator whose code raised it, and the record if it is known.

    Each entrance to an operator's code notes what passes it. The first note stays: that of the innermost operator.
    """
    if _OPERATOR not in error.__dict__:
        error.__dict__[_OPERATOR] = operator
        if record:
            error.__dict__[_RECORD] = record[0]


def operator_of(error: BaseException) -> str | None:
    """Return the operator in whose code it was raised, or None if dagkit itself raised it."""
    name: str | None = error.__dict__.get(_OPERATOR)
    return name


def record_of(error: BaseException) -> Sequence[object]:
    """Return the record on which it was raised, as the only item; no item if it is not known."""
    return [error.__dict__[_RECORD]] if _RECORD in error.__dict__ else ()


class code_of:  # noqa: N801 - written as a function: one made by `contextmanager` takes three times as long
    """Enter an operator's code. Calls for each record have a `try` of their own: this one would cost too much there."""

    __slots__ = ("_operator",)

    def __init__(self, operator: str) -> None:
        self._operator = operator

    def __enter__(self) -> None:
        """Enter the code."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Note what was raised."""
        if isinstance(error, Exception):
            note(error, self._operator)


def made_by(operator: str, made: Iterable[T]) -> Iterator[T]:
    """Iterate over what an operator's code makes; each step enters its code."""
    return _making(operator)(operator, made)


@cache
def _making(operator: str) -> Callable[[str, Iterable[Any]], Iterator[Any]]:
    """The function that does it for this operator: it is called for each batch, and made once."""
    return entrance(operator, _made_by)


def _made_by(operator: str, made: Iterable[T]) -> Iterator[T]:
    with code_of(operator):
        yield from made


def noting_item(operator: str, call: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a function of one item as an entrance."""

    def call_or_note(item: Any) -> T:
        try:
            return call(item)
        except Exception as error:
            note(error, operator, item)
            raise

    return call_or_note


def noting(operator: str, take: Callable[[Batch[Any]], None]) -> Callable[[Batch[Any]], None]:
    """Return `take` as an entrance. If it fails, parts of it are sent again, to find the record."""

    def take_or_note(batch: Batch[Any]) -> None:
        try:
            take(batch)
        except Exception as error:
            if operator_of(error) is None:
                note(error, operator)
                error.__dict__[_SEARCH] = partial(_failing_record, batch, take, error)
                if not _sender.finds:
                    find_record(error)
            raise

    return entrance(operator, take_or_note)


@contextmanager
def found_by_sender() -> Iterator[None]:
    """Leave the search for a record to the block's caller, which knows where records came from.

    It calls `failing_among`, then `find_record`.
    """
    before, _sender.finds = _sender.finds, True
    try:
        yield
    finally:
        _sender.finds = before


def find_record(error: Exception) -> None:
    """Search for the record on which an exception was raised, unless it was found."""
    search = error.__dict__.pop(_SEARCH, None)
    if search is not None and not record_of(error):
        for record in search():
            error.__dict__[_RECORD] = record


# A failure names the byte of its record, and to carry a position with each record would cost more than the operators
# do. So the record is searched afterwards. The author's code sees the records before it twice; one that fails by chance
# may not fail again, and then the failure names the block alone.
def _failing_record(batch: Batch[Any], take: Callable[[Batch[Any]], None], error: Exception) -> Iterable[Any]:
    if isinstance(error, RunFailure) and not error.caused_by_author:  # dagkit failed, whatever the record is
        return ()
    failing = failing_among(len(batch), lambda part: take(sliced(batch, part)), error)
    return () if failing is None else list(batch.sliced(failing, 1).items())


def sliced(batch: Batch[Any], part: slice) -> Batch[Any]:
    """A part of a batch."""
    return batch.sliced(part.start, part.stop - part.start)


def failing_among(count: int, send: Callable[[slice], object], first: Exception) -> int | None:
    """Return the index of the item that raises the same error as `first`, or None.

    The attempt is lost already, so halves of the items are sent again until one item is left. These are few calls, as a
    call may cost much more than an item. An operator with state may fail differently on an item that it has seen
    before.
    """
    if count == 1:
        return 0
    start, stop, last = 0, count, None
    tries = tries_of(first)
    while stop - start > 1:
        middle = (start + stop) // 2
        error = _same_error(send, slice(start, middle), first)
        if error is None:
            start, last = middle, None
        else:
            stop, last, tries = middle, error, tries + 1
    if last is None:
        last, tries = _same_error(send, slice(start, stop), first), tries + 1
    if last is None:
        return None
    find_record(last)
    first.__dict__[_TRIES] = tries - 1 + tries_of(last)
    for record in record_of(last):
        first.__dict__[_RECORD] = record
    return start


def _same_error(send: Callable[[slice], object], part: slice, first: Exception) -> Exception | None:
    """Send a part of the items. Return what it raises if that is the same error as `first`."""
    try:
        with muted(), found_by_sender():
            send(part)
    except Exception as error:  # noqa: BLE001 - the caller raises the first error
        return error if (type(error), str(error)) == (type(first), str(first)) else None
    return None


def tries_of(error: BaseException) -> int:
    """Return how often the operator got the record on which it raised an exception."""
    tries: int = error.__dict__.get(_TRIES, 1)
    return tries
