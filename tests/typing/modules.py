"""Modules: a port stands behind a port of the same direction and type."""

from dagkit import Config, Dag, InputPort, Module, Operator, OutputPort, StreamingApplication


class Line: ...


class Word: ...


class Split(Operator):
    lines = InputPort(Line)
    words = OutputPort(Word)


class Reads(Module):
    lines = InputPort(Line)
    words = OutputPort(Word)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        split = dag.add_operator("split", Split())
        dag.expose(self.lines, split.lines)
        dag.expose(self.words, split.words)
        dag.expose(self.lines, split.words)  # error: call-overload
        dag.expose(self.words, split.lines)  # error: call-overload


class App(StreamingApplication):
    minutes: int = 1

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        reads = dag.add_module("reads", Reads())
        split = dag.add_operator("split", Split())
        dag.add_stream("lines", reads.words, split.lines)  # error: misc or arg-type
        limit: int = conf.read("limit", int, 3)
        perhaps: int | None = conf.read("limit", int)
        surely: int = conf.read("limit", int)  # error: assignment


class Unfinished(StreamingApplication):
    """It draws nothing."""


Unfinished()  # error: abstract
App(minutes=3)
App(minute=3)  # error: call-arg
