"""The busy time of a slot is divided among its operators by samples of its stack."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dagkit import Batch, InputPort, Operator, OutputPort, RowOperator
from dagkit.engine.program.entrances import entrance, made_by, operator_at
from dagkit.engine.program.program import Keying
from dagkit.engine.worker.busy import BusyTime
from dagkit.engine.worker.instances import bind_output, receiver

PASSES = {"one": 1.0, "two": 2.0, "three": 4.0}
"""How long each operator of a chain takes for an item."""


class Desk:
    """A clock that operators move on, and the samples that they take when they have done so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.busy = BusyTime(PASSES, lambda: self.now)

    def work(self, name: str, items: int = 1) -> None:
        self.now += PASSES[name] * items
        self.busy.sample(sys._getframe())


desk = Desk()


class Sends(Operator):
    called: str
    input = InputPort(int)
    output = OutputPort(int)

    def process(self, item: int) -> None:
        desk.work(self.called)
        self.output.emit(item)


class Yields(RowOperator):
    """Yields items, and works after the one that it yielded has been processed, too."""

    called: str
    input = InputPort(int)
    output = OutputPort(int)

    def process(self, item: int) -> Iterator[int]:
        yield item
        desk.work(self.called)


class Batches(Operator):
    called: str
    input = InputPort(int)
    output = OutputPort(int)

    def process_batch(self, batch: Batch[int]) -> None:
        desk.work(self.called, len(batch))
        self.output.emit_batch(batch)


@pytest.fixture(autouse=True)
def anew():
    desk.__init__()


def chained(*kinds: Callable[..., Any]) -> Any:
    """Bind operators to each other, and return the receiver of the first; others are flushed upstream first."""
    operators = [kind(called=name) for kind, name in zip(kinds, PASSES, strict=True)]
    receivers = [receiver(each, "input", Keying(), each.called) for each in operators]
    for sender, into in zip(operators, receivers[1:], strict=False):
        bind_output(sender, "output", [into])
    return receivers


@pytest.mark.parametrize("kinds", [(Sends, Sends, Sends), (Yields, Yields, Yields), (Yields, Sends, Batches)])
@pytest.mark.parametrize("in_batches", [False, True], ids=["items", "a batch"])
def test_the_time_since_the_last_sample_is_that_of_the_innermost_operator(kinds, in_batches):
    first, *others = chained(*kinds)
    if in_batches:
        first.batch(Batch.of([1, 2]))
    else:
        for item in (1, 2):
            first.item(item)
    for each in others:
        if each.flush is not None:
            each.flush()
    assert desk.busy.divided(desk.now) == {"one": 2.0, "two": 4.0, "three": 8.0}


def test_what_an_operator_makes_is_made_in_its_time():
    def numbers() -> Iterator[int]:
        for number in (1, 2):
            desk.work("one")
            yield number

    first, *_ = chained(Sends, Sends, Sends)
    for number in made_by("three", numbers()):
        first.item(number)
    assert desk.busy.divided(1) == {"one": 2 / 16, "two": 4 / 16, "three": 10 / 16}


def test_time_outside_of_all_entrances_is_that_of_the_operator_whose_turn_it_is_or_of_all_in_proportion():
    busy = desk.busy
    for operator, now in (("one", 3.0), ("two", 4.0), ("", 8.0)):
        busy.operator, desk.now = operator, now
        busy.sample(None)
    assert busy.divided(8.0) == {"one": 6.0, "two": 2.0, "three": 0.0}


def test_a_slot_without_a_sample_divides_its_time_equally():
    assert BusyTime(["a", "b"], lambda: 0.0).divided(3.0) == {"a": 1.5, "b": 1.5}


def test_while_a_slot_works_it_reports_the_shares_that_are_not_small():
    busy = desk.busy
    assert busy.shares() == {}, "nothing is sampled yet"
    for operator, now in (("one", 30.0), ("two", 99.0), ("three", 100.0)):
        busy.operator, desk.now = operator, now
        busy.sample(None)
    assert busy.shares() == {"one": 0.3, "two": 0.69}
    assert BusyTime(["alone"], lambda: 0.0).shares() == {"alone": 1.0}, "no timer interrupts it"


def test_an_entrance_of_an_operator_of_another_slot_is_not_seen():
    seen = entrance("elsewhere", lambda: operator_at(sys._getframe(), {"here"}))
    assert entrance("here", lambda: [seen()])() == ["here"]


class Noted(BusyTime):
    samples = 0

    def sample(self, frame: Any) -> None:
        super().sample(frame)
        self.samples += 1


@contextmanager
def handled_by(handler: Any) -> Iterator[None]:
    before = signal.signal(signal.SIGPROF, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, before)


def until_sampled(busy: Noted, samples: int) -> None:
    while busy.samples < samples:
        sum(range(100))


def test_a_timer_interrupts_the_main_thread_of_a_process_until_its_slot_ends():
    busy = Noted(["a", "b"], iter(range(1000)).__next__)
    with busy.sampling():
        entrance("b", until_sampled)(busy, 3)
    assert busy.divided(1.0) == {"a": 0.0, "b": 1.0}
    samples = busy.samples
    signal.raise_signal(signal.SIGPROF)
    assert busy.samples == samples


@pytest.mark.parametrize("operators", [["a"], []])
def test_a_slot_with_one_operator_is_not_interrupted(operators):
    busy = BusyTime(operators, lambda: 0.0)
    with handled_by(signal.SIG_DFL), busy.sampling():
        assert signal.getsignal(signal.SIGPROF) is signal.SIG_DFL
    assert busy.divided(2.0) == dict.fromkeys(operators, 2.0)


def test_a_handler_of_the_author_is_left_in_place():
    taken: list[int] = []
    busy = Noted(["a", "b"], lambda: 0.0)
    with handled_by(lambda number, _: taken.append(number)), busy.sampling():
        signal.raise_signal(signal.SIGPROF)
    assert (taken, busy.samples) == ([signal.SIGPROF], 0)
