"""What the cases of the laws are made of: a function that draws on a Dag, and an operator that a source feeds."""

from collections.abc import Callable
from typing import Any

from dagkit import Dag, Locality
from tests.compiler.cast import Delay, Source, Step

Draw = Callable[[Dag], None]

Broken = list[tuple[Draw, list[str]]]
"""Functions that draw a breach, and its report: the code, and how the problem begins."""


def fed(dag: Dag, name: str, operator: Any, port: str = "input") -> Any:
    """An operator that a source feeds."""
    source = dag.add_operator(f"source of {name}", Source())
    dag.add_operator(name, operator)
    dag.add_stream(f"into {name}", source.out, getattr(operator, port))
    return operator


def looped(dag: Dag, locality: Locality | None = None) -> Delay:
    """A delay from an operator back to itself."""
    c, delay = fed(dag, "c", Step(), "one"), dag.add_operator("delay", Delay())
    dag.add_stream("c>delay", c.out, delay.input).set_locality(locality)
    dag.add_stream("delay>c", delay.output, c.two).set_locality(locality)
    return delay
