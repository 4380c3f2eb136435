"""Drawing: run the author's `populate_dag`, and freeze what it wrote down."""

import re
from types import CodeType
from typing import Any

from dagkit.api.application import Module, StreamingApplication
from dagkit.api.component import Component
from dagkit.api.config import Config
from dagkit.api.dag import Dag
from dagkit.api.ports import called, input_ports, output_ports
from dagkit.api.traces import author_where, shown_path
from dagkit.errors import Diagnostic, Where, did_you_mean


def draw(author: StreamingApplication | Module, conf: Config) -> tuple[Dag, Diagnostic | None, Exception | None]:
    """The Dag that the author's `populate_dag` wrote, and what kept it from being finished."""
    dag = Dag()
    try:
        author.populate_dag(dag, conf)
    except Exception as raised:  # noqa: BLE001 - the author's code may raise anything, and its report is the diagnostic
        return dag, _why_unfinished(author, raised), raised
    return dag, None, None


def where_of(author: StreamingApplication | Module) -> Where | None:
    """The line on which the author's `populate_dag` begins."""
    populate: Any = getattr(author, "populate", None) or type(author).populate_dag
    code: CodeType | None = getattr(populate, "__code__", None)
    return Where(shown_path(code.co_filename), code.co_firstlineno) if code is not None else None


def _why_unfinished(author: StreamingApplication | Module, raised: Exception) -> Diagnostic:
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
    return Diagnostic(
        "populate-failed",
        f"populate_dag of {_called(author)} raised {type(raised).__name__}: {raised}",
        "mend this line; what comes after it was not looked at",
        where,
    )


def _called(author: StreamingApplication | Module) -> str:
    return author.application_name if isinstance(author, StreamingApplication) else type(author).__name__
