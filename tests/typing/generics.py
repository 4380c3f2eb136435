"""Generic operators: what they carry is what stands between their brackets."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from dagkit import Dag, DelayOperator, InputOperator, InputPort, OutputPort, RowOperator

T = TypeVar("T")


class Line: ...


class Word: ...


class Lines(InputOperator):
    lines = OutputPort(Line)


class Keep(RowOperator, Generic[T]):
    input = InputPort[T]()
    output = OutputPort[T]()
    keeps: Callable[[T], bool]

    def process(self, item: T) -> Iterator[T]:
        if self.keeps(item):
            yield item


class Count(RowOperator):
    words = InputPort(Word)
    counts = OutputPort(int)

    def process(self, item: Word) -> Iterator[int]:
        yield 1


class KeepLines(Keep[Line]):
    """The brackets may stand in the class."""


dag = Dag()
lines = dag.add_operator("lines", Lines())
count = dag.add_operator("count", Count())

keep = dag.add_operator("keep", Keep[Line](keeps=lambda line: True))
dag.add_stream("1", lines.lines, keep.input)
dag.add_stream("2", keep.output, keep.input)
dag.add_stream("3", keep.output, count.words)  # error: misc or arg-type

words = dag.add_operator("words", Keep[Word](keeps=lambda word: True))
dag.add_stream("4", words.output, count.words)
dag.add_stream("5", lines.lines, words.input)  # error: misc or arg-type

own = dag.add_operator("own", KeepLines(keeps=lambda line: True))
dag.add_stream("6", lines.lines, own.input)
dag.add_stream("7", own.output, count.words)  # error: misc or arg-type

delay = dag.add_operator("delay", DelayOperator[Word]())
dag.add_stream("8", delay.output, count.words)
dag.add_stream("9", lines.lines, delay.input)  # error: misc or arg-type
