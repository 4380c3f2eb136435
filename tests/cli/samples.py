"""Applications in small, as text."""

WORD_COUNT = '''\
from collections.abc import Iterator
from dataclasses import dataclass

from dagkit import Config, Dag, InputOperator, InputPort, Operator, OutputPort, RowOperator, StreamingApplication

@dataclass(frozen=True, slots=True)
class Line:
    text: str

@dataclass(frozen=True, slots=True)
class Word:
    word: str

class Lines(InputOperator):
    """Makes lines."""

    kind = "test.lines/1"
    lines = OutputPort(Line)
    folder: str = "in"

    def emit_tuples(self) -> None:
        """There are none."""

class Split(RowOperator):
    """Splits lines into words.

    Short ones are dropped.
    """

    kind = "test.split/1"
    lines = InputPort(Line)
    words = OutputPort(Word)
    min_length: int = 1
    """Letters that a word has at least."""

    def process(self, item: Line) -> Iterator[Word]:
        yield from (Word(word) for word in item.text.split() if len(word) >= self.min_length)

class Count(Operator):
    """Counts words."""

    kind = "test.count/1"
    items = InputPort(Word)
    counts = OutputPort(int)

    def process(self, item: Word) -> None:
        """Count one."""

class WordCount(StreamingApplication):
    """Counts the words of lines."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        lines = dag.add_operator("lines", Lines())
        split = dag.add_operator("split", Split())
        count = dag.add_operator("count", Count())
        dag.add_stream("text", lines.lines, split.lines)
        dag.add_stream("words", split.words, count.items)
'''

DISCONNECTED = WORD_COUNT.replace('        dag.add_stream("words", split.words, count.items)\n', "").replace(
    "class WordCount", "class Disconnected"
)
