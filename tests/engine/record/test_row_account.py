"""The items of a window add up, on every backend; where they do not, the warning names operator, window and numbers."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag, InputOperator, InputPort, Operator, OutputPort, RowOperator, Rows, SplittableOperator, State
from dagkit.api.operators import rows_of
from dagkit.engine.record.history import Window, refuse_unbalanced, row_history
from dagkit.engine.record.row_account import OperatorRows, RowsUnbalanced, StreamRows, breaches
from dagkit.ledger import Ledger
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit_operators import Filter, FlatMap, Map
from tests.engine.cast import Desk, Draw, Swallow, chain, on_both

WINDOWS = (("1", "2", "x"), ("4",))


class Texts(InputOperator):
    output = OutputPort(str)
    at = State(0)

    def emit_tuples(self) -> None:
        for text in WINDOWS[self.at] if self.at < len(WINDOWS) else ():
            self.output.emit(text)
        self.at += 1


class Each(SplittableOperator[str]):
    """Takes each text as an element of its own."""

    input = InputPort(str, main=True)

    def initial_restriction(self, element: str) -> OffsetRange:
        return OffsetRange(0, 1)

    def process(self, element: str, tracker: RestrictionTracker[OffsetRange, int]) -> None:
        tracker.try_claim(0)


class Lossy(RowOperator):
    """Drops even numbers, although it declares that it keeps all."""

    rows = Rows.KEPT
    input = InputPort(int)
    output = OutputPort(int)

    def process(self, item: int) -> Iterator[int]:
        if item % 2:
            yield item


class Doubling(Lossy):
    """Sends each number twice, although it declares that it sends at most one."""

    rows = Rows.FILTERED

    def process(self, item: int) -> Iterator[int]:
        yield from (item, item)


def draw(*operators: tuple[str, Operator]) -> Draw:
    """Texts to numbers, whose rejected ones go to a sink of their own, through these operators into a sink."""

    def populate_dag(dag: Dag, conf: object) -> None:
        chain(Texts=Texts(), Numbers=Map[str, int](int), **dict(operators), Sink=Swallow())(dag, conf)
        dag.add_stream("rejected", dag.operator("Numbers").rejected, dag.add_operator("Refused", Swallow()).input)

    return populate_dag


def accounts(path: Path, draw: Draw, **given: Any) -> list[Window]:
    desk = Desk(path, draw, **given)
    desk.run(windows=2)
    return list(row_history(desk.ledger()))


def breaches_in(window: Window) -> list[RowsUnbalanced]:
    return list(breaches(window.checkpoint.window, window.checkpoint.rows))


@on_both
def test_the_ledger_keeps_the_items_of_each_window(tmp_path, backend):
    operators = [("Odd", Filter[int](lambda n: n % 2 == 1)), ("Twice", FlatMap[int, int](lambda n: [n, n]))]
    first, second = accounts(tmp_path, draw(*operators), backend=backend)
    assert first.checkpoint.rows.operators == {
        "Numbers": OperatorRows(taken={"input": 3}, sent={"output": 2, "rejected": 1}, rule=Rows.KEPT),
        "Odd": OperatorRows(taken={"input": 2}, sent={"output": 1}, rule=Rows.FILTERED),
        "Twice": OperatorRows(taken={"input": 1}, sent={"output": 2}, rule=Rows.EXPANDED),
        "Sink": OperatorRows(taken={"input": 2}),
        "Refused": OperatorRows(taken={"input": 1}),
    }
    assert first.checkpoint.rows.streams["Odd.output > Twice.input"] == StreamRows(sent=1, taken=1)
    assert first.checkpoint.rows.streams["Numbers.rejected > Refused.input"] == StreamRows(sent=1, taken=1)
    assert [rows.dropped for rows in second.checkpoint.rows.operators.values()] == [0, 1]
    assert not [*breaches_in(first), *breaches_in(second)]


class WithRows(Operator):
    """Names its input as the declaration of how many items it sends."""

    rows = InputPort[int]()
    output = OutputPort(int)

    def process(self, item: int) -> None:
        self.output.emit(item)


@on_both
def test_a_port_may_be_named_rows(tmp_path, backend):
    first, _ = accounts(tmp_path, draw(("Rows", WithRows())), backend=backend)
    assert first.checkpoint.rows.operators["Rows"] == OperatorRows(taken={"rows": 2}, sent={"output": 2})


@on_both
@pytest.mark.parametrize(
    ("operator", "numbers"),
    [
        (Lossy(), "received 2, sent 1 and rejected 0; it must send or reject each once"),
        (Doubling(), "received 2, sent 4 and rejected 0; it must send or reject each at most once"),
    ],
    ids=["lossy", "doubling"],
)
def test_a_window_that_does_not_add_up_is_reported(operator, numbers, tmp_path, backend, caplog):
    with caplog.at_level(logging.WARNING):
        first, _ = accounts(tmp_path, draw(("Broken", operator)), backend=backend)
    (breach,) = breaches_in(first)
    assert breach.problem == f"the items of Broken do not add up in window 1: it {numbers}"
    assert (breach.scene.operator, breach.scene.window) == ("Broken", 1)
    assert f"{breach}" in [record.getMessage() for record in caplog.records]
    assert "[rows-unbalanced]" in str(breach)
    with pytest.raises(RowsUnbalanced, match="the items of Broken do not add up in window 1"):
        refuse_unbalanced(Ledger.open(str(tmp_path / "app")))


@on_both
def test_elements_count_as_sent_by_the_operator_before_a_splittable_one(tmp_path, backend):
    texts = chain(Texts=Texts(), Numbers=Map[str, str](lambda text: text), Each=Each())
    windows = accounts(tmp_path, texts, backend=backend)
    assert [window.checkpoint.rows.operators["Numbers"].sent for window in windows] == [{"output": 3}, {"output": 1}]
    assert [window.checkpoint.rows.operators["Each"].received for window in windows] == [3, 1]
    assert not [breach for window in windows for breach in breaches_in(window)]


def test_items_lost_on_a_stream_are_reported():
    assert StreamRows(sent=3, taken=6, copies=2).adds_up
    assert not StreamRows(sent=3, taken=2).adds_up


def test_what_leaves_by_an_unconnected_output_is_not_missed(tmp_path):
    window, _ = accounts(tmp_path, chain(Texts=Texts(), Numbers=Map[str, str](lambda text: text)))
    assert window.checkpoint.rows.operators["Numbers"].rule is Rows.FILTERED
    assert breaches_in(window) == []


def test_a_subclass_with_another_process_declares_its_rows_again():
    class Other(Filter[int]):
        def process(self, item: int) -> Iterator[int]:
            yield from (item, item)

    class Same(Filter[int]):
        """Has the process of its base."""

    rules = [rows_of(kind) for kind in (Filter, Same, Other, Doubling)]
    assert rules == [Rows.FILTERED, Rows.FILTERED, None, Rows.FILTERED]
