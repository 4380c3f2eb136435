"""An application in a module that no worker has, with a helper that none has either."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import networkx as nx
from shouting import Shout, loud  # beside this file, as an author's helpers are

import dagkit
from dagkit import (
    Config,
    Dag,
    InputOperator,
    InputPort,
    KeyedState,
    Operator,
    OperatorContext,
    OutputPort,
    State,
    StatelessPartitioner,
    StreamingApplication,
)


class Words(InputOperator):
    out = OutputPort(str)


class Shouts(Operator):
    """Says each word aloud; the first to meet "die" takes its process with it, once."""

    words = InputPort(str)
    shouts = OutputPort(Shout)
    mark: str
    hears: Callable[[str], bool]
    dagkit_at = State[str]("")

    def process(self, word: str) -> None:
        self.dagkit_at = str(dagkit.__file__)
        if word == "die" and not Path(self.mark).exists():
            Path(self.mark).touch()
            os._exit(1)
        if self.hears(word):
            self.shouts.emit(Shout(loud(word), os.getpid()))


class Counts(Operator):
    shouts = InputPort(Shout, key="word")
    counts = KeyedState[str, int](int)

    def process(self, shout: Shout) -> None:
        assert type(shout) is Shout
        self.counts[shout.word] += 1


class Drawn(StreamingApplication):
    """What only the driver needs, and a library that no worker has."""

    drawn: ClassVar[nx.DiGraph] = nx.DiGraph()

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        """Draw nothing more."""


def draw(dag: Any, mark: str, hears: Callable[[str], bool]) -> None:
    words, counts = dag.add_operator("words", Words()), dag.add_operator("counts", Counts())
    shouts = dag.add_operator("shouts", Shouts(mark=mark, hears=hears))
    for operator in (shouts, counts):
        dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, StatelessPartitioner(2))
    dag.add_stream("words", words.out, shouts.words)
    dag.add_stream("shouts", shouts.shouts, counts.shouts)
