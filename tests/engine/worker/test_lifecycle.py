"""The life of an operator: every engine calls it in the same order, and what was begun is ended once."""

import logging
from typing import Any, ClassVar

import pytest

from dagkit import InputPort, Operator, OutputPort, Unifier
from dagkit.compiler import compile_application
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.lower import program_of
from dagkit.engine.worker.lifecycle import Life
from dagkit.testing import Alone
from tests.engine.cast import Collect, Desk, Script, chain, on_both


def noted(call: str, *, shows: bool = True) -> Any:
    def callback(self: "Noted", *given: object) -> None:
        self.note(" ".join([call, *map(str, given)]) if shows else call)

    return callback


class Noted(Operator):
    fails_in: str = ""
    calls: ClassVar[list[str]] = []

    def note(self, call: str) -> None:
        self.calls.append(call)
        if call.partition(" ")[0] == self.fails_in:
            raise ValueError(f"no {call}")

    setup = noted("setup", shows=False)
    activate = noted("activate", shows=False)
    begin_window = noted("begin_window")
    drained = noted("drained")
    end_window = noted("end_window")
    before_checkpoint = noted("before_checkpoint")
    checkpointed = noted("checkpointed")
    committed = noted("committed")
    deactivate = noted("deactivate")
    teardown = noted("teardown")


class Taking(Noted):
    input = InputPort(int)

    def process(self, item: int) -> None:
        self.note(f"process {item}")


class Merging(Noted, Unifier[int]):
    def process(self, item: int) -> None:
        self.note(f"process {item}")
        self.unified.emit(item)


class Failing(Merging):
    fails_in: str = "process"


class Numbers(Operator):
    input = InputPort(int)
    output = OutputPort(int, unifier=Merging)

    def process(self, item: int) -> None:
        self.output.emit(item)


class NumbersInVain(Numbers):
    output = OutputPort(int, unifier=Failing)


class Finding(Script, Noted):
    """An input operator that writes down how it is called."""


@pytest.fixture
def calls():
    Noted.calls.clear()
    yield Noted.calls
    Noted.calls.clear()


def in_windows(*windows: str) -> list[str]:
    return [call for window in windows for call in window.split(", ")]


@on_both
def test_an_operator_lives_in_one_order_on_every_backend(tmp_path, backend, calls):
    draw = chain(numbers=Script(looks=((7,), (8,))), takes=Taking())
    Desk(tmp_path, draw, backend=backend, overlap=1).run()
    assert calls == in_windows(
        "setup, activate, begin_window 1, process 7, end_window, before_checkpoint 1, deactivate, teardown",
        "setup, activate, checkpointed 1, committed 1, begin_window 2, process 8, end_window, before_checkpoint 2",
        "deactivate, teardown",
        "setup, activate, checkpointed 2, committed 2, begin_window 3, drained, end_window, before_checkpoint 3",
        "deactivate, teardown",
    )


def test_an_operator_alone_lives_in_that_order(calls):
    alone = Alone(Taking())
    for item in (7, 8):
        with alone.window(last=True):
            alone.send(item)
    alone.restarted()
    assert calls == in_windows(
        "setup, activate, begin_window 1, process 7, drained, end_window, before_checkpoint 1",
        "checkpointed 1, committed 1, begin_window 2, process 8, drained, end_window, before_checkpoint 2",
        "deactivate, teardown",
        "setup, activate",
    )


def unified(numbers: type[Operator]) -> Any:
    return chain(numbers=Script(looks=((7,),)), sends=(numbers(), 2), collect=Collect())


@on_both
def test_a_unifier_lives_as_any_operator_does(tmp_path, backend, calls):
    Desk(tmp_path, unified(Numbers), backend=backend).run()
    assert calls == in_windows("setup, activate, begin_window 1, process 7, end_window, deactivate, teardown")


@on_both
def test_a_unifier_that_fails_is_torn_down_and_names_whom_it_merges_for(tmp_path, backend, calls):
    with pytest.raises(OperatorFailed, match=r"^collect failed in window 1, slot 0: ValueError: no process 7"):
        Desk(tmp_path, unified(NumbersInVain), backend=backend).run()
    assert calls == in_windows("setup, activate, begin_window 1, process 7, deactivate, teardown")


@on_both
def test_an_operator_that_fails_is_torn_down_and_so_is_its_input(tmp_path, backend, calls):
    draw = chain(finds=Finding(looks=((7,),)), takes=Taking(fails_in="process"))
    with pytest.raises(OperatorFailed, match="no process 7"):
        Desk(tmp_path, draw, backend=backend).run()
    assert calls.count("setup") == calls.count("teardown") == 2


def test_an_input_operator_that_cannot_be_activated_is_torn_down(tmp_path, calls):
    with pytest.raises(OperatorFailed, match=r"finds failed .* no activate"):
        Desk(tmp_path, chain(finds=Finding(looks=((7,),), fails_in="activate"), collect=Collect())).run()
    assert calls == ["setup", "activate", "teardown"]


CONTEXT = program_of(compile_application(chain(script=Script(), takes=Taking()))).context_of("takes", 0, 1)


@pytest.mark.parametrize(
    ("fails_in", "ended"),
    [
        ("setup", []),  # nothing is owed before setup has returned
        ("activate", ["teardown"]),  # what is not active is not deactivated
        ("begin_window", ["deactivate", "teardown"]),
    ],
)
def test_what_failed_is_ended_as_far_as_it_was_begun(fails_in, ended, calls):
    life = Life(Taking(fails_in=fails_in))

    def begin() -> None:
        life.set_up(CONTEXT)
        life.begin(1)

    with pytest.raises(ValueError, match=f"no {fails_in}"):
        begin()
    calls.clear()
    life.abandon(1)
    life.abandon(1)
    assert calls == ended


def test_teardown_is_called_though_deactivate_fails(calls, caplog):
    life = Life(Taking(fails_in="deactivate"))
    life.set_up(CONTEXT)
    with caplog.at_level(logging.ERROR):
        life.abandon(3)
    assert calls == ["setup", "activate", "deactivate", "teardown"]
    assert caplog.messages == ["Taking could not be torn down after window 3 failed"]


def test_an_application_window_begins_and_ends_with_its_first_and_last_streaming_window(calls):
    life = Life(Taking(), windows=3)
    for window_id in range(1, 7):
        life.begin(window_id)
        life.end(window_id)
    assert calls == ["begin_window 1", "end_window", "begin_window 4", "end_window"]
