"""A window in which an operator's server does not answer is tried again until it does, and nothing of it is doubled."""

import logging

import pytest

from dagkit import InputPort, Operator, OutputPort, State, Unavailable
from dagkit.engine.program.failures import OperatorFailed
from dagkit.testing import FakeClock
from tests.engine.cast import Collect, Desk, Script, arrived, chain, on_both

AWAY = iter(())


class Priced(Operator):
    """Asks a server in one of its methods, and counts what it priced."""

    kind = "awaited.priced/1"
    input = InputPort(int)
    output = OutputPort(int)
    asks_in: str = "process"
    count = State(0)

    def begin_window(self, window_id):
        self.ask("begin_window")

    def process(self, item):
        self.count += 1
        self.output.emit(10 * item)
        self.ask("process")

    def end_window(self):
        self.ask("end_window")

    def ask(self, method):
        if method == self.asks_in and next(AWAY, False):
            raise Unavailable("the server answers 503")


def priced(asks_in):
    return chain(numbers=Script(looks=((1, 2), (3,))), priced=Priced(asks_in=asks_in), collect=Collect())


@on_both
@pytest.mark.parametrize("asks_in", ["begin_window", "process", "end_window"])
def test_a_window_waits_for_the_server_of_an_operator_and_is_processed_once(
    tmp_path, monkeypatch, caplog, asks_in, backend
):
    monkeypatch.setattr(f"{__name__}.AWAY", iter([True, True, True]))
    clock = FakeClock()
    began = clock.now()
    desk = Desk(tmp_path, priced(asks_in), clock=clock, backend=backend)
    with caplog.at_level(logging.WARNING):
        loop = desk.run()
    assert arrived(loop) == [10, 20, 30]
    assert loop.state["priced"][0]["count"] == 3
    assert caplog.text.count("priced does not answer, and is tried again until it does: the server answers 503") == 1
    assert caplog.text.count("priced answers again") == 1
    assert (clock.now() - began).total_seconds() >= 0.7
    assert desk.faults() == []


def test_a_launch_that_is_to_stop_leaves_the_window_to_the_next_one(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(f"{__name__}.AWAY", iter(lambda: True, None))
    desk = Desk(tmp_path, priced("process"), clock=FakeClock())
    loop = desk.loop(observers=[lambda event: loop.stop() if type(event).__name__ == "Failed" else None])
    loop.run()
    assert (loop.checkpoint.window, "window 1 waited for a server" in caplog.text) == (0, True)
    monkeypatch.setattr(f"{__name__}.AWAY", iter(()))
    assert arrived(desk.run()) == [10, 20, 30]
    assert desk.faults() == []


def test_another_failure_after_an_outage_ends_the_run(tmp_path, monkeypatch):
    def answers():
        yield True
        raise ValueError("no price")

    monkeypatch.setattr(f"{__name__}.AWAY", answers())
    with pytest.raises(OperatorFailed, match="no price"):
        Desk(tmp_path, priced("process"), clock=FakeClock()).run()
