"""Drawing: run the author's `populate_dag`, and report why it failed."""

import inspect
import re
from dataclasses import replace
from types import CodeType
from typing import Any

from pydantic import ValidationError

from dagkit.api.application import FunctionApplication, Module, StreamingApplication
from dagkit.api.component import Component
from dagkit.api.configuration import Config
from dagkit.api.dag import Dag
from dagkit.api.ports import called, input_ports, output_ports
from dagkit.api.traces import author_where, shown_path, summary
from dagkit.compiler.missing import Missing, holds, missing_at, standing_in
from dagkit.conf.declared.declaration import DeclaredApplication
from dagkit.conf.values.object_making import spoken
from dagkit.errors import Diagnostic, Where, did_you_mean


def draw(author: StreamingApplication | Module, conf: Config) -> tuple[Dag, Diagnostic | None, BaseException | None]:
    """The Dag that the author's `populate_dag` filled; if it failed, why, and the exception that ended it."""
    suspended = _suspended(author)
    if suspended is not None:
        return Dag(), suspended, TypeError(suspended.problem)
    dag, unfinished, raised = _drawn(author, conf)
    stood_in: list[Missing] = []
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
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(raised.name)).lower()
        return Diagnostic("populate-failed", f"a Dag has no {raised.name!r}", did_you_mean(snake, methods), where)
    reason = f"ValidationError: {raised.title}: {spoken(raised)}" if isinstance(raised, ValidationError) else None
    return Diagnostic(
        "populate-failed",
        f"populate_dag of {_called(author)} raised {reason or summary(raised)}",
        "fix this line; later lines were not checked",
        where,
    )


def _called(author: StreamingApplication | Module) -> str:
    return author.application_name if isinstance(author, StreamingApplication) else type(author).__name__
