"""An operator alone behaves as it does in an engine: its callbacks come in order, and nothing but its state lasts."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from dagkit import (
    Batch,
    Block,
    InputOperator,
    InputPort,
    KeyedState,
    Operator,
    OperatorContext,
    OutputFiles,
    OutputPort,
    RowOperator,
    SplittableOperator,
    State,
)
from dagkit.api.running import Shutdown
from dagkit.ranges import OFFSET_INFINITY, Deferred, OffsetRange, WorkUnclaimed
from dagkit.testing import Alone
from tests.engine.worker.test_lifecycle import Noted


class Telling(Operator):
    input = InputPort(str)
    other = InputPort(int, optional=True)
    output = OutputPort(str, main=True)
    unread = OutputPort(str)
    prefix: str = ""
    count = State(0)

    def setup(self, context: Any) -> None:
        self.output.emit(f"setup {context.partition} of {context.partitions}")

    def begin_window(self, window_id: int) -> None:
        self.output.emit(f"begin {window_id}")

    def process(self, item: str) -> None:
        self.count += 1
        self.output.emit(self.prefix + item)

    @other.process
    def take_other(self, item: int) -> None:
        self.output.emit(str(item))
        self.unread.emit(f"connected: {self.unread.is_connected}")

    def drained(self) -> None:
        self.output.emit("drained")

    def end_window(self) -> None:
        self.output.emit("end")


def test_callbacks_come_in_order():
    alone = Alone(Telling(prefix="-"), partition=1, partitions=3)
    with alone.window():
        alone.send("a", "b", to="input")
        alone.send(7, to="other")
    with alone.window(last=True) as window_id:
        assert window_id == 2
    assert alone.sent() == ["setup 1 of 3", "begin 1", "-a", "-b", "7", "end", "begin 2", "drained", "end"]
    assert alone.sent() == []


def test_an_application_window_is_as_long_as_its_attribute_says():
    alone = Alone(Telling(), attributes={OperatorContext.APPLICATION_WINDOW_COUNT.qualified: 2})
    for _ in range(3):
        with alone.window():
            pass
    assert alone.sent() == ["setup 0 of 1", "begin 1", "end", "begin 3"]


def test_outputs_are_connected_unless_set_otherwise_and_an_operator_that_cannot_run_says_why():
    alone = Alone(Telling())
    alone.send(1, to="other")
    assert alone.sent("unread") == ["connected: True"]
    alone = Alone(Telling(), connected=["output"])
    alone.send(1, to="other")
    with pytest.raises(KeyError):
        alone.sent("unread")
    with pytest.raises(AssertionError, match="Telling cannot run: prefix: input should be a valid string"):
        Alone(Telling(prefix=7))
    with pytest.raises(TypeError, match=r"Twice is a class, not an operator: pass Twice\(…\)"):
        Alone(Twice)


def test_the_state_is_what_lasts_the_operator_that_was_given_is_left_alone_and_keyed_state_knows_its_keys():
    given = Telling()
    alone = Alone(given)
    alone.send("a", to="input")
    again = alone.restarted()
    again.send("b", to="input")
    assert (again.state, given.count) == ({"count": 2}, 0)
    alone = Alone(Counting())
    alone.send("a", "b", "a")
    assert {json.loads(key): count for key, (count, _) in alone.state["seen"].items()} == {"a": 2, "b": 1}


class Twice(RowOperator):
    input = InputPort(str)
    output = OutputPort(str)

    def process(self, item: str) -> Iterator[str]:
        yield from (item, item)


class Length(Operator):
    texts = InputPort(str)
    output = OutputPort(int)

    @texts.process_batch
    def take(self, batch: Batch[str]) -> Batch[int]:
        return Batch.of([len(item) for item in batch.items()])


def test_items_and_batches_are_handed_to_whatever_takes_them():
    one = Alone(Twice())
    one.send("a")
    one.send_batch(["b"])
    assert one.sent() == ["a", "a", "b", "b"]
    many = Alone(Length())
    with many.window():
        many.send("a", "bb")
        assert many.batches() == []
    assert many.batches() == [[1, 2]]
    many.send_batch(Batch.of(["ccc"]))
    assert (many.batches(), many.sent(), many.batches()) == ([[1, 2], [3]], [1, 2, 3], [])


class Counting(Operator):
    input = InputPort(str)
    seen = KeyedState[str, int](int)

    def process(self, item: str) -> None:
        self.seen[item] += 1


class Heard(Noted, InputOperator):
    """Emits as many numbers as each look is to find; none is the end."""

    output = OutputPort(int)
    looks: tuple[int | None, ...] = ()
    done = State(0)

    def emit_tuples(self) -> None:
        found = self.looks[self.done]
        self.done += 1
        if found is None:
            raise Shutdown
        for number in range(found):
            self.output.emit(number)

    def handle_idle_time(self) -> None:
        self.note("idle")


def test_a_look_is_what_it_is_in_an_engine():
    Noted.calls.clear()
    alone = Alone(Heard(looks=(2, 0, 1, None)))
    for _ in range(4):
        assert not alone.ended
        alone.look()
    assert alone.ended
    assert (alone.sent(), alone.state) == ([0, 1, 0], {"done": 4})
    assert ", ".join(Noted.calls) == (
        "setup, activate, begin_window 1, end_window, before_checkpoint 1, "
        "checkpointed 1, committed 1, begin_window 2, idle, end_window, before_checkpoint 2, "
        "begin_window 2, end_window, before_checkpoint 2, "
        "checkpointed 2, committed 2, begin_window 3, end_window, before_checkpoint 3"
    )
    with pytest.raises(AssertionError, match="Heard has ended"):
        alone.look()


class Preparing(Operator):
    """Writes down what it has once it is to be saved."""

    input = InputPort(str)
    kept = State(0)
    _taken: int = 0

    def process(self, item: str) -> None:
        self._taken += 1

    def before_checkpoint(self, window_id: int) -> None:
        self.kept = self._taken


def test_the_state_is_what_the_operator_made_of_it_before_it_was_saved():
    alone = Alone(Preparing())
    with alone.window():
        alone.send("a", "b")
    assert alone.restarted().state == {"kept": 2}


class Writing(Operator):
    input = InputPort(str)
    files = OutputFiles(lambda operator: "anywhere")

    def process(self, item: str) -> None:
        self.files.open(item[0], block=len(item)).write(item.encode())
        if item.endswith("."):
            self.files.finish(item[0])


def test_files_are_in_memory():
    alone = Alone(Writing())
    alone.send("ab", "ba", "a.")
    assert alone.written() == {"a": b"aba.", "b": b"ba"}
    assert alone.files["files"].finished == {"a"}
    with pytest.raises(AssertionError, match="a is finished, and opened again"):
        alone.restarted().send("ab")
    with pytest.raises(AssertionError, match="b belongs to block 2, and is opened for 3"):
        alone.send("bcd")


class Numbers(SplittableOperator[Any]):
    """Each position is a number; three are claimed at a time."""

    input = InputPort[Any]()
    output = OutputPort(int)

    def initial_restriction(self, element: Any) -> OffsetRange:
        return element if isinstance(element, OffsetRange) else super().initial_restriction(element)

    def process(self, element: Any, tracker: Any) -> Iterator[Batch[int]]:
        position = tracker.current_restriction().start
        while granted := tracker.claim_many(range(position, position + 3)):
            yield Batch.of(list(range(position, position + granted)))
            if granted < 3:
                return
            position += granted


@pytest.mark.parametrize("split_after", range(6))
@pytest.mark.parametrize("split_at", [None, *range(1, 10)])
def test_work_is_split_where_the_test_says(split_after, split_at):
    alone = Alone(Numbers())
    residual = alone.work(OffsetRange(0, 10), split_after=split_after, split_at=split_at)
    claimed = min(10, split_after * 3)
    expected = claimed if split_at is None else split_at
    in_time = split_after <= 4 and claimed <= expected < 10
    assert residual == (OffsetRange(expected, 10) if in_time else None)
    assert alone.sent() == list(range(expected if in_time else 10))


def test_what_is_split_off_a_block_is_a_block_and_work_that_is_left_unclaimed_is_an_error():
    block = Block(5, "somewhere", 10, 20, True)
    assert Alone(Numbers()).work(block, split_after=1, split_at=15) == Block(5, "somewhere", 15, 20, True)

    class Lazy(Numbers):
        def process(self, element: Any, tracker: Any) -> Iterator[Batch[int]]:
            tracker.try_claim(0)
            yield Batch.of([0])

    with pytest.raises(WorkUnclaimed, match=r"\[1, 10\) was never claimed"):
        Alone(Lazy()).work(OffsetRange(0, 10))


class Growing(Numbers):
    """Numbers below a limit, which comes on a second input; numbers beyond it wait."""

    input = InputPort[Any](main=True)
    limits = InputPort(int)
    limit = State(0)

    def initial_restriction(self, element: Any) -> OffsetRange:
        return OffsetRange(0, OFFSET_INFINITY)

    @limits.process
    def raise_limit(self, limit: int) -> None:
        self.limit = limit

    def process(self, element: Any, tracker: Any) -> Iterator[Batch[int]]:
        place = tracker.current_restriction().start
        while place < self.limit and tracker.try_claim(place):
            yield Batch.of([place])
            place += 1
        tracker.defer_remainder(timedelta(seconds=5))


def test_what_an_operator_deferred_is_returned_and_worked_on_in_turn():
    alone = Alone(Growing())
    assert alone.work("numbers") is None
    assert alone.deferred == Deferred(OffsetRange(0, OFFSET_INFINITY), timedelta(seconds=5))
    alone.send(2)
    alone.work("numbers", alone.deferred.residual)
    assert alone.deferred.residual == OffsetRange(2, OFFSET_INFINITY)
    alone.send(4)
    residual = alone.work("numbers", alone.deferred.residual, split_after=1)
    assert residual == OffsetRange(3, OFFSET_INFINITY)
    assert alone.deferred is None
    alone.work("numbers", residual)
    assert alone.sent() == [0, 1, 2, 3]
