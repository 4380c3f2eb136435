"""Ports that are not there: where one has ended a drawing, another drawing goes on with an end that stands for it.

Nothing stands in at first. An application that draws to its end never meets a stand-in, and what it learns by `hasattr`
or by catching AttributeError is so. Only once the drawing is known to fail, it is drawn anew, and the port seems to be
there on the very line that asked for it.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import getattr_static
from types import FrameType
from typing import Any

from dagkit.api.application import Module
from dagkit.api.component import Component
from dagkit.api.dag import Dag
from dagkit.api.operators import Operator
from dagkit.api.ports import MissingPort
from dagkit.api.traces import author_where, is_authored, shown_path
from dagkit.errors import Diagnostic, Where


@dataclass(frozen=True, slots=True)
class Missing:
    """A port that a line asked for, and that the class of the operator does not have."""

    owner: type
    name: str
    where: Where
    told: Diagnostic = field(compare=False)


def missing_at(raised: BaseException | None, told: Diagnostic | None) -> Missing | None:
    """What ended a drawing by being no attribute of an operator or a module, and may have been meant as a port."""
    if not isinstance(raised, AttributeError) or not isinstance(raised.obj, Operator | Module) or told is None:
        return None
    owner, name, where = type(raised.obj), str(raised.name), author_where(raised)
    if where is None or getattr_static(owner, name, None) is not None:
        return None  # what is there, and fails, is not to be hidden
    return Missing(owner, name, where, told)


@contextmanager
def standing_in(missing: Sequence[Missing]) -> Iterator[None]:
    """Each of these ports is there meanwhile, for the line that asked for it and for no other."""
    places = {(each.owner, each.name): _Place(each.name, set()) for each in missing}
    for each in missing:
        places[each.owner, each.name].lines.add(each.where)
    for (owner, name), place in places.items():
        setattr(owner, name, place)
    try:
        yield
    finally:
        for owner, name in places:
            delattr(owner, name)


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """Where a port would be declared: gives the stand-in to the lines that may have it."""

    name: str
    lines: set[Where]

    def __get__(self, instance: Component | None, owner: type) -> MissingPort:
        if instance is None or _author_line(sys._getframe(1)) not in self.lines:  # noqa: SLF001 - only the stack knows who asks
            raise AttributeError(f"{owner.__name__!r} has no {self.name!r}", name=self.name, obj=instance)
        return MissingPort(instance, self.name)


def _author_line(frame: FrameType | None) -> Where | None:
    """The line of the author that is being run, as `author_where` tells it of an exception."""
    while frame is not None and not is_authored(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else Where(shown_path(frame.f_code.co_filename), frame.f_lineno)


def holds(before: Dag, redrawn: Dag, raised: BaseException | None, missing: Sequence[Missing]) -> bool:
    """Whether a drawing with stand-ins tells something of the application, and not of the stand-ins.

    It must begin as the drawing before it did; and what stood in must have been taken for a port, for nothing else.
    """
    if any(now[: len(then)] != then for then, now in zip(_written(before), _written(redrawn), strict=True)):
        return False
    if raised is not None:
        return MissingPort.__name__ not in _said(raised)
    taken = {(type(end.operator), end.name) for end in _stand_ins(redrawn)}
    return all((each.owner, each.name) in taken for each in missing)


def _written(dag: Dag) -> tuple[list[Any], list[Any]]:
    """What was written down, as far as it can be compared between two drawings."""
    placements = [(placement.name, type(placement.component), placement.where) for placement in dag.placements]
    return placements, [(stream.name, stream.where) for stream in dag.streams]


def _stand_ins(dag: Dag) -> Iterator[MissingPort]:
    """Every stand-in that was led into a stream, exposed, or given an attribute."""
    ends: list[Any] = [end for stream in dag.streams for end, _ in stream.ends]
    ends += [end for exposure in dag.exposures for end in (exposure.outer, exposure.inner)]
    ends += [assignment.target for assignment in dag.assignments]
    yield from (end for end in ends if isinstance(end, MissingPort))


def _said(raised: BaseException) -> str:
    try:
        return str(raised)
    except Exception:  # noqa: BLE001 - the author's exception may fail to say anything
        return ""
