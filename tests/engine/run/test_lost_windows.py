"""Windows that a machine lost, and no operator: they run again, a few times."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from dagkit import Config, Dag
from dagkit.compiler import Compilation
from dagkit.engine.failures import WindowLost
from dagkit.engine.reports.run_events import Failed, RunEvent
from dagkit.engine.run.in_flight import ATTEMPTS_AT_LOST_WINDOWS
from dagkit.engine.worker.protocol import Answer, Backend, Cores, WindowTask
from tests.engine.cast import Collect, Desk, Script, arrived


@dataclass
class Losing:
    """A backend that loses the first windows that it is given."""

    inner: Backend
    losses: int
    given: list[int] = field(default_factory=list)

    def load(self, compilation: Compilation) -> None:
        self.inner.load(compilation)

    def cores(self) -> Cores:
        return self.inner.cores()

    def run(self, assignment: WindowTask) -> Answer:
        self.given.append(assignment.window_id)
        if len(self.given) <= self.losses:
            raise WindowLost("a machine went away")
        return self.inner.run(assignment)

    def running(self) -> Any:
        return self.inner.running()

    def put_in_place(self, files: Any, application_path: str, *, durable: bool) -> None:
        self.inner.put_in_place(files, application_path, durable=durable)

    def close(self) -> None:
        self.inner.close()


def draw(dag: Dag, conf: Config) -> None:
    dag.add_operator("numbers", Script(looks=((1, 2), (3,)))) >> dag.add_operator("collect", Collect())


def test_a_window_that_was_lost_runs_again(tmp_path):
    losing: list[Losing] = []

    def backend(inner: Backend) -> Backend:
        losing.append(Losing(inner, ATTEMPTS_AT_LOST_WINDOWS))
        return losing[0]

    loop = Desk(tmp_path, draw, backend=backend).run()
    assert arrived(loop) == [1, 2, 3]
    assert losing[0].given == [1] * ATTEMPTS_AT_LOST_WINDOWS + [1, 2]


def test_a_window_that_is_lost_again_and_again_ends_the_run_and_not_the_application(tmp_path):
    desk = Desk(tmp_path, draw, backend=lambda inner: Losing(inner, ATTEMPTS_AT_LOST_WINDOWS + 1))
    with pytest.raises(WindowLost, match="went away"):
        desk.run()
    desk.backend = lambda inner: inner
    assert arrived(desk.run()) == [1, 2, 3]


def test_observers_receive_each_loss(tmp_path):
    told: list[RunEvent] = []
    desk = Desk(tmp_path, draw, backend=lambda inner: Losing(inner, ATTEMPTS_AT_LOST_WINDOWS + 1))
    with pytest.raises(WindowLost, match="went away"):
        desk.run(observers=[told.append])
    failed = [each for each in told if isinstance(each, Failed)]
    assert [each.again for each in failed] == [True] * ATTEMPTS_AT_LOST_WINDOWS + [False]
    assert {(each.operator, each.message) for each in failed} == {(None, "WindowLost: a machine went away")}
