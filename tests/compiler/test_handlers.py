"""Each input has a method that can take its items, or the compiler reports the fault before anything runs."""

from collections.abc import Iterator
from typing import Any

import pytest

from dagkit import Dag, InputOperator, InputPort, Operator, OutputPort, RowOperator, SplittableOperator
from dagkit.api.operators import NotYielded, handler_of
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults, Diagnostic, Severity


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
def test_an_operator_that_cannot_work_is_reported(
    operator: Operator, code: str, severity: Severity, problem: str, help_: str
) -> None:
    (told,) = _told(operator)
    assert (told.code, told.severity) == (code, severity)
    assert problem in told.problem
    assert help_ in told.help
    assert told.where is not None


@pytest.mark.parametrize("operator", [SharingOnPurpose(), Served(), Knowing()], ids=lambda case: type(case).__name__)
def test_what_can_work_is_not_reported(operator: Operator) -> None:
    assert _told(operator) == []


class Returning(RowOperator):
    """Returns what it should yield."""

    words = InputPort(str)
    out = OutputPort(str)
    made: Any = "ABC"

    def process(self, item: str) -> Iterator[str]:
        return self.made  # type: ignore[no-any-return] # the mistake under test


def test_a_text_that_is_returned_is_not_sent_letter_by_letter() -> None:
    with pytest.raises(NotYielded, match=r"Returning\.process returned 'ABC'(.|\n)*`yield item`"):
        handler_of(Returning(), "words")("abc")


def test_an_iterator_that_is_returned_is_sent() -> None:
    sent: list[str] = []
    operator = Returning(made=iter(["a", "b"]))
    operator._sinks["out"] = sent.append
    handler_of(operator, "words")("abc")
    assert sent == ["a", "b"]
