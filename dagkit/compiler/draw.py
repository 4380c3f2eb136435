"""Drawing: run the author's `populate_dag`, and report why it failed, or which port is missing."""

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import getattr_static
from types import CodeType, FrameType
from typing import Any

from pydantic import ValidationError

from dagkit.api.application import FunctionApplication, Module, StreamingApplication
from dagkit.api.component import Component
from dagkit.api.configuration import Config
from dagkit.api.dag import Dag
from dagkit.api.operators import Operator
from dagkit.api.ports import MissingPort, called, input_ports, output_ports
from dagkit.api.traces import author_where, is_authored, shown_path, summary
from dagkit.conf.declared.declaration import DeclaredApplication
from dagkit.conf.grammar.names import snake
from dagkit.conf.values.object_making import spoken
from dagkit.errors import Diagnostic, Where, did_you_mean


def draw(author: StreamingApplication | Module, conf: Config) -> tuple[Dag, Diagnostic | None, BaseException | None]:
    """The Dag that the author's `populate_dag` filled; if it failed, why, and the exception that ended it."""
    suspended = _suspended(author)
    if suspended is not None:
        return Dag(), suspended, TypeError(suspended.problem)
    dag, unfinished, raised = _drawn(author, conf)
    stood_in: list[Missing] = []
    # Each run shows only the next missing port. One that is missing although it is stood in for would be missing for
    # ever.
    while (missing := missing_at(raised, unfinished)) is not None and missing not in stood_in:
        stood_in.append(missing)
        with standing_in(stood_in):
            redrawn, why, ended = _drawn(author, conf)
        if not holds(dag, redrawn, ended, stood_in):
            break
        redrawn.faults += [port.fault for port in stood_in]
        dag, unfinished, raised = redrawn, why, ended
    return dag, unfinished, raised


def _drawn(author: StreamingApplication | Module, conf: Config) -> tuple[Dag, Diagnostic | None, BaseException | None]:
    dag = Dag()
    try:
        author.populate_dag(dag, conf)
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - the author's code may raise anything: it is reported
        return dag, _why_unfinished(author, raised), raised
    return dag, None, None


def where_of(author: StreamingApplication | Module) -> Where | None:
    """The line on which the author's `populate_dag` begins; for a declared application, the file that declares it."""
    if isinstance(author, DeclaredApplication):
        declared = author.declaration
        parts: list[Any] = [*declared.operators, *declared.streams, *(setting.origin for setting in declared.settings)]
        where: Where | None = parts[0].where if parts else None
        return None if where is None else replace(where, line=None)
    code: CodeType | None = getattr(_populate(author), "__code__", None)
    return Where(shown_path(code.co_filename), code.co_firstlineno) if code is not None else None


def _populate(author: StreamingApplication | Module) -> Any:
    return author.populate if isinstance(author, FunctionApplication) else type(author).populate_dag


def _suspended(author: StreamingApplication | Module) -> Diagnostic | None:
    """Why calling populate_dag would not run it: it is a class, a generator or a coroutine function. Else None."""
    populate = _populate(author)
    if isinstance(populate, type) and issubclass(populate, StreamingApplication):
        problem, help_ = f"{populate.__name__} is a class, not an application", f"pass {populate.__name__}()"
        return Diagnostic("populate-failed", problem, help_)
    if inspect.isgeneratorfunction(populate) or inspect.isasyncgenfunction(populate):
        what, help_ = "a generator", "remove yield: Python runs none of its lines otherwise"
    elif inspect.iscoroutinefunction(populate):
        what, help_ = "a coroutine", "write def instead of async def: Python runs none of its lines otherwise"
    else:
        return None
    return Diagnostic("populate-failed", f"populate_dag of {_called(author)} is {what}", help_, where_of(author))


def _why_unfinished(author: StreamingApplication | Module, raised: BaseException) -> Diagnostic:
    where = author_where(raised) or where_of(author)
    if isinstance(raised, AttributeError) and isinstance(raised.obj, Component):
        ports = [*input_ports(type(raised.obj)), *output_ports(type(raised.obj))]
        help_ = did_you_mean(
            str(raised.name), ports, otherwise=f"it has the ports {', '.join(ports)}" if ports else "it has no ports"
        )
        return Diagnostic("port-unknown", f"no port {raised.name!r} on {called(raised.obj)}", help_, where)
    if isinstance(raised, AttributeError) and isinstance(raised.obj, Dag):
        methods = [name for name in dir(Dag) if not name.startswith("_")]
        return Diagnostic(
            "populate-failed", f"a Dag has no {raised.name!r}", did_you_mean(snake(str(raised.name)), methods), where
        )
    reason = f"ValidationError: {raised.title}: {spoken(raised)}" if isinstance(raised, ValidationError) else None
    return Diagnostic(
        "populate-failed",
        f"populate_dag of {_called(author)} raised {reason or summary(raised)}",
        "fix this line; later lines were not checked",
        where,
    )


def _called(author: StreamingApplication | Module) -> str:
    return author.application_name if isinstance(author, StreamingApplication) else type(author).__name__


# The first run has no stand-ins: `hasattr` and catching AttributeError answer correctly in an application that does not
# fail. Only after it fails does `populate_dag` run again, and the stand-in appears only on the line that used the port.


@dataclass(frozen=True, slots=True)
class Missing:
    """A port that a line used, and that the class of the operator does not have."""

    owner: type
    name: str
    where: Where
    fault: Diagnostic = field(compare=False)


def missing_at(raised: BaseException | None, fault: Diagnostic | None) -> Missing | None:
    """The missing attribute of an operator or a module that ended `populate_dag`, if it may be meant as a port."""
    if not isinstance(raised, AttributeError) or not isinstance(raised.obj, Operator | Module) or fault is None:
        return None
    owner, name, where = type(raised.obj), str(raised.name), author_where(raised)
    if where is None or getattr_static(owner, name, None) is not None:
        return None  # the attribute exists and raised: a stand-in would hide it
    return Missing(owner, name, where, fault)


@contextmanager
def standing_in(missing: Sequence[Missing]) -> Iterator[None]:
    """Within the context, each of these ports exists for the lines that used it, and for no other line."""
    places = {(port.owner, port.name): _Place(port.name, set()) for port in missing}
    for port in missing:
        places[port.owner, port.name].lines.add(port.where)
    # On the class, since Python calls descriptors there only.
    for (owner, name), place in places.items():
        setattr(owner, name, place)
    try:
        yield
    finally:
        for owner, name in places:
            delattr(owner, name)


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A descriptor in place of the port, which returns the stand-in only to the lines that used the port."""

    name: str
    lines: set[Where]

    def __get__(self, instance: Component | None, owner: type) -> MissingPort:
        if instance is None or _author_line(sys._getframe(1)) not in self.lines:  # noqa: SLF001 - only the stack has the caller
            raise AttributeError(f"{owner.__name__!r} has no {self.name!r}", name=self.name, obj=instance)
        return MissingPort(instance, self.name)


def _author_line(frame: FrameType | None) -> Where | None:
    """The author's line that is running, as `author_where` finds it for an exception."""
    while frame is not None and not is_authored(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else Where(shown_path(frame.f_code.co_filename), frame.f_lineno)


def holds(before: Dag, redrawn: Dag, raised: BaseException | None, missing: Sequence[Missing]) -> bool:
    """Whether the faults of a run with stand-ins are those of the application, and not caused by the stand-ins.

    The run must begin with the same operators and streams as the run before, and use each stand-in as a port.
    """
    if any(now[: len(then)] != then for then, now in zip(_written(before), _written(redrawn), strict=True)):
        return False
    if raised is not None:
        return MissingPort.__name__ not in _message(raised)
    taken = {(type(end.operator), end.name) for end in _stand_ins(redrawn)}
    return all((port.owner, port.name) in taken for port in missing)


def _written(dag: Dag) -> tuple[list[Any], list[Any]]:
    """The operators and streams of a Dag, in a form that can be compared between two runs of `populate_dag`."""
    placements = [(placement.name, type(placement.component), placement.where) for placement in dag.placements]
    return placements, [(stream.name, stream.where) for stream in dag.streams]


def _stand_ins(dag: Dag) -> Iterator[MissingPort]:
    """Every stand-in that a stream, an exposed port or an attribute uses."""
    ends: list[Any] = [end for stream in dag.streams for end, _ in stream.ends]
    ends += [end for exposure in dag.exposures for end in (exposure.outer, exposure.inner)]
    ends += [assignment.target for assignment in dag.assignments]
    yield from (end for end in ends if isinstance(end, MissingPort))


def _message(raised: BaseException) -> str:
    try:
        return str(raised)
    except Exception:  # noqa: BLE001 - the author's exception may raise in __str__
        return ""
