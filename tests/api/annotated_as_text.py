"""Operators whose annotations are text, as `from __future__ import annotations` makes them."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import ClassVar, Final

from dagkit import InputPort, Operator, OutputFiles, OutputPort, RowOperator, State, auto_metric
from dagkit.api.metrics import MetricField
from dagkit.api.state import KeyedState


class Annotated(RowOperator):
    lines: InputPort[Line] = InputPort()
    words: OutputPort[str] = OutputPort()
    count: State[list[Line]] = State(list)
    by_name: KeyedState[str, Line] = KeyedState(lambda: Line())  # noqa: PLW0108 - it is declared below
    seen: MetricField[int] = auto_metric(0)
    limit: int = 3

    def process(self, item: Line) -> Iterator[str]:
        yield str(item)


class OfTheClass(Operator):
    lines: ClassVar[InputPort[Line]] = InputPort()
    words: typing.ClassVar[OutputPort[str]] = OutputPort()
    errors: Final[OutputPort[int]] = OutputPort()
    files: OutputFiles = OutputFiles(lambda _: "out")

    def process(self, item: Line) -> None:
        self.words.emit(str(item))


class Line:
    """Declared after the operators that name it."""
