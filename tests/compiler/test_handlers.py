"""Each input has a method that can take its items, or the compiler reports the fault before anything runs."""

from collections.abc import Iterator
from typing import Any

import pytest

from dagkit import Dag, InputOperator, InputPort, Operator, OutputPort, RowOperator, SplittableOperator
from dagkit.api.operators import NotYielded, handler_of
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults, Diagnostic, Severity
from dagkit.launching import Machine, launch_compiled


class Texts(InputOperator):
    """A root that sends texts."""

    out = OutputPort(str)


class Mute(Operator):
    """No handler at all."""

    words = InputPort(str)


class Misspelt(Operator):
    """One whose handler is misspelt."""

    words = InputPort(str)

    def proccess(self, item: str) -> None: ...


class Misnamed(InputOperator):
    """An input operator whose method has another name than the engine calls."""

    out = OutputPort(str)

    def emit(self) -> None: ...


class Idle(InputOperator):
    """An input operator that emits in another method than `emit_tuples`."""

    out = OutputPort(str)

    def handle_idle_time(self) -> None: ...


class HalfServed(Operator):
    """One input has a method, the other was forgotten."""

    words = InputPort(str)
    more = InputPort(str)

    @words.process
    def take_words(self, item: str) -> None: ...


class Renamed(Operator):
    """The decorated method is not there under its name."""

    words = InputPort(str)
    take = words.process(lambda self, item: None)


class Greedy(Operator):
    """Its handler wants more than an item."""

    words = InputPort(str)

    def process(self, item: str, port: str) -> None: ...


class Itemless(Operator):
    """Its handler forgets the item."""

    words = InputPort(str)

    def process(self) -> None: ...


class Endless(RowOperator):
    """Yields, and has no output."""

    words = InputPort(str)

    def process(self, item: str) -> Iterator[str]:
        yield item


class Forked(RowOperator):
    """Yields, and has two outputs, of which none is main."""

    words = InputPort(str)
    one = OutputPort(str)
    two = OutputPort(str)

    def process(self, item: str) -> Iterator[str]:
        yield item


class Sharing(Operator):
    """Two inputs, one plain process."""

    words = InputPort(str)
    more = InputPort(str)

    def process(self, item: str) -> None: ...


class SharingOnPurpose(Operator):
    """Two inputs, one process, and it is said."""

    words = InputPort(str)
    more = InputPort(str)

    @words.process
    @more.process
    def process(self, item: str) -> None: ...


class Served(Mute):
    """The engine itself takes the items."""

    served_by_engine = True


class Looking(SplittableOperator[Any]):
    """A reader with a second input, which has no method."""

    words = InputPort(str)
    more = InputPort(str)

    def process(self, element: Any, tracker: Any) -> Iterator[Any]:
        yield element


class Knowing(Looking):
    """A reader whose second input has a method."""

    more = InputPort(str)
    out = OutputPort(str)

    @more.process
    def take(self, item: str) -> None: ...


def _told(operator: Any) -> list[Diagnostic]:
    dag = Dag()
    dag.add_operator("S", operator)
    for port in ("words", "more"):
        if hasattr(operator, port):
            source = dag.add_operator(f"texts for {port}", Texts())
            dag.add_stream(port, source.out, getattr(operator, port))
    try:
        return list(compile_application(dag).notes)
    except ApplicationFaults as faults:
        return list(faults.diagnostics)


@pytest.mark.parametrize(
    ("operator", "code", "severity", "problem", "help_"),
    [
        (Mute(), "input-unhandled", Severity.WARNING, "flows into S.words", "def process(self, item)"),
        (Misspelt(), "input-unhandled", Severity.ERROR, "it has no 'process'", "did you mean 'proccess'"),
        (Misnamed(), "method-undefined", Severity.ERROR, "S never emits an item", "did you mean 'emit' to be 'emit_t"),
        (HalfServed(), "input-unhandled", Severity.ERROR, "flows into S.more", "@more.process"),
        (Renamed(), "input-unhandled", Severity.ERROR, "it has no '<lambda>'", "@words.process"),
        (Greedy(), "handler-mismatched", Severity.ERROR, "Greedy.process(self, item, port)", "one item"),
        (Itemless(), "handler-mismatched", Severity.ERROR, "cannot take an item of S.words", "one item"),
        (Endless(), "handler-mismatched", Severity.ERROR, "S has no output", "declare an output"),
        (Forked(), "handler-mismatched", Severity.ERROR, "one and two are all outputs", "one = OutputPort(…, main"),
        (Looking(), "input-unhandled", Severity.ERROR, "flows into S.more", "decorate a method with @more.process"),
        (Sharing(), "handler-mismatched", Severity.WARNING, "S.words and S.more share", "@words.process"),
    ],
    ids=lambda case: type(case).__name__ if isinstance(case, Operator) else "",
)
def test_an_operator_that_cannot_work_is_reported(operator, code, severity, problem, help_):
    (told,) = _told(operator)
    assert (told.code, told.severity) == (code, severity)
    assert problem in told.problem
    assert help_ in told.help
    assert told.where is not None


@pytest.mark.parametrize(
    "operator", [SharingOnPurpose(), Served(), Knowing(), Idle()], ids=lambda case: type(case).__name__
)
def test_what_can_work_is_not_reported(operator):
    assert _told(operator) == []


@pytest.mark.parametrize(
    ("operator", "code", "help_"),
    [(Mute(), "input-unhandled", "def process(self, item)"), (Texts(), "method-undefined", "def emit_tuples(self)")],
    ids=["no handler", "no emit_tuples"],
)
def test_what_is_not_written_yet_can_be_planned_and_is_refused_before_it_runs(operator, code, help_):
    dag, sink = Dag(), Mute() if isinstance(operator, Mute) else Written()
    source = operator if isinstance(operator, Texts) else Idle()
    dag.add_stream("words", dag.add_operator("Source", source).out, dag.add_operator("Sink", sink).words)
    compilation = compile_application(dag)
    with pytest.raises(ApplicationFaults) as refused:
        launch_compiled(compilation, Machine("reference"))
    (fault,) = refused.value.diagnostics
    assert (fault.code, fault.severity) == (code, Severity.ERROR)
    assert help_ in fault.help


class Written(Operator):
    """One that can run."""

    words = InputPort(str)

    def process(self, item: str) -> None: ...


class Returning(RowOperator):
    """Returns what it should yield."""

    words = InputPort(str)
    out = OutputPort(str)
    made: Any = "ABC"

    def process(self, item: str) -> Iterator[str]:
        return self.made  # the mistake under test


def test_a_text_that_is_returned_is_not_sent_letter_by_letter():
    with pytest.raises(NotYielded, match=r"Returning\.process returned 'ABC'(.|\n)*`yield item`"):
        handler_of(Returning(), "words")("abc")


def test_an_iterator_that_is_returned_is_sent():
    sent: list[str] = []
    operator = Returning(made=iter(["a", "b"]))
    operator._sinks["out"] = sent.append
    handler_of(operator, "words")("abc")
    assert sent == ["a", "b"]
