"""Each input has a method that can take its items, or the compiler reports the fault before anything runs."""

from collections.abc import Iterator
from typing import Any

import pytest

from dagkit import Dag, InputOperator, InputPort, Operator, OutputPort, RowOperator, SplittableOperator
from dagkit.api.operators import handler_of
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults, RunFailure, Severity
from dagkit.launching import Machine, launch_compiled
from tests.cases import cases
from tests.compiler.cast import told


class Texts(InputOperator):
    out = OutputPort(str)


class Mute(Operator):
    words = InputPort(str)


class Misspelt(Mute):
    def proccess(self, item: str) -> None: ...


class Misnamed(Texts):
    def emit(self) -> None: ...


class Idle(Texts):
    def handle_idle_time(self) -> None: ...


class OfApex(Mute):
    def process(self, item: str) -> None: ...

    def beginWindow(self, window_id: int) -> None: ...  # noqa: N802 - as Apex has it


class HalfServed(Operator):
    words = InputPort(str)
    more = InputPort(str)

    @words.process
    def take_words(self, item: str) -> None: ...


class Renamed(Operator):
    """The decorated method is not there under its name."""

    words = InputPort(str)
    take = words.process(lambda self, item: None)


class Greedy(Mute):
    def process(self, item: str, port: str) -> None: ...


class Itemless(Mute):
    def process(self) -> None: ...


class Yielding(RowOperator):
    words = InputPort(str)

    def process(self, item: str) -> Iterator[str]:
        yield item


class Forked(Yielding):
    one = OutputPort(str)
    two = OutputPort(str)


class Written(Mute):
    def process(self, item: str) -> None: ...


class Sharing(Written):
    more = InputPort(str)


class SharingOnPurpose(Operator):
    words = InputPort(str)
    more = InputPort(str)

    @words.process
    @more.process
    def process(self, item: str) -> None: ...


class Served(Mute):
    served_by_engine = True


class Undefined(SplittableOperator[str]):
    words = InputPort(str)

    def process(self, element: Any, tracker: Any) -> Iterator[Any]:
        yield element


class Looking(Undefined):
    more = InputPort(str)

    def initial_restriction(self, element: Any) -> tuple[int, int]:
        return 0, 1


class Knowing(Looking):
    more = InputPort(str)
    out = OutputPort(str)

    @more.process
    def take(self, item: str) -> None: ...


def _told(operator):
    dag = Dag()
    dag.add_operator("S", operator)
    for port in ("words", "more"):
        if hasattr(operator, port):
            dag.add_stream(port, dag.add_operator(f"texts for {port}", Texts()).out, getattr(operator, port))
    return told(dag)


ERROR, WARNING = Severity.ERROR, Severity.WARNING
UNHANDLED, MISMATCHED = "input-unhandled", "handler-mismatched"


@pytest.mark.parametrize(
    ("operator", "code", "severity", "problem", "help_"),
    [
        (Mute, UNHANDLED, WARNING, "flows into S.words", "def process(self, item)"),
        (Misspelt, UNHANDLED, ERROR, "it has no 'process'", "did you mean 'proccess'"),
        (Misnamed, "method-undefined", ERROR, "S never emits an item", "did you mean 'emit' to be 'emit_t"),
        (OfApex, "method-undefined", ERROR, "nothing calls OfApex.beginWindow", "did you mean 'begin_window'"),
        (
            Undefined,
            "method-undefined",
            ERROR,
            "does not define the work on a str",
            "def initial_restriction(self, element)",
        ),
        (HalfServed, UNHANDLED, ERROR, "flows into S.more", "@more.process"),
        (Renamed, UNHANDLED, ERROR, "it has no '<lambda>'", "@words.process"),
        (Greedy, MISMATCHED, ERROR, "Greedy.process(self, item, port)", "one item"),
        (Itemless, MISMATCHED, ERROR, "cannot take an item of S.words", "one item"),
        (Yielding, MISMATCHED, ERROR, "S has no output", "declare an output"),
        (Forked, MISMATCHED, ERROR, "one and two are all outputs", "one = OutputPort(…, main"),
        (Looking, UNHANDLED, ERROR, "flows into S.more", "decorate a method with @more.process"),
        (Sharing, MISMATCHED, WARNING, "S.words and S.more share", "@words.process"),
    ],
)
def test_an_operator_that_cannot_work_is_reported(operator, code, severity, problem, help_):
    (fault,) = _told(operator())
    assert (fault.code, fault.severity) == (code, severity)
    assert problem in fault.problem
    assert help_ in fault.help
    assert fault.where


@pytest.mark.parametrize("operator", [SharingOnPurpose, Served, Knowing, Idle])
def test_what_can_work_is_not_reported(operator):
    assert _told(operator()) == []


@cases(
    "source, sink, code, help_",
    ("no handler", Idle, Mute, UNHANDLED, "def process(self, item)"),
    ("no emit_tuples", Texts, Written, "method-undefined", "def emit_tuples(self)"),
)
def test_what_is_not_written_yet_can_be_planned_and_is_refused_before_it_runs(source, sink, code, help_):
    dag = Dag()
    dag.add_stream("words", dag.add_operator("Source", source()).out, dag.add_operator("Sink", sink()).words)
    compilation = compile_application(dag)
    with pytest.raises(ApplicationFaults) as refused:
        launch_compiled(compilation, Machine("reference"))
    (fault,) = refused.value.diagnostics
    assert (fault.code, fault.severity) == (code, ERROR)
    assert help_ in fault.help


class Returning(RowOperator):
    words = InputPort(str)
    out = OutputPort(str)
    made: Any = "ABC"

    def process(self, item: str) -> Iterator[str]:
        return self.made


def test_an_iterator_that_is_returned_is_sent_and_a_text_is_not_letter_by_letter():
    sent, operator = [], Returning(made=iter(["a", "b"]))
    operator._sinks["out"] = sent.append
    handler_of(operator, "words")("abc")
    assert sent == ["a", "b"]
    with pytest.raises(RunFailure, match=r"Returning\.process returned 'ABC'(.|\n)*`yield item`"):
        handler_of(Returning(), "words")("abc")
