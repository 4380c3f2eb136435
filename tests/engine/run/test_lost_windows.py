"""Windows that a machine lost, and no operator: they run again, a few times."""

from dataclasses import dataclass, field

import pytest

from dagkit.engine.parts.in_flight import ATTEMPTS_AT_LOST_WINDOWS
from dagkit.engine.program.failures import WindowLost
from dagkit.engine.record.run_events import Failed, RunEvent
from dagkit.engine.worker.protocol import Answer, Backend, WindowTask
from tests.engine.cast import Around, Collect, Desk, Script, arrived, chain, reference


@dataclass
class Losing(Around):
    """A backend that loses the first windows that it is given."""

    losses: int = 0
    given: list[int] = field(default_factory=list)

    def run(self, assignment: WindowTask) -> Answer:
        self.given.append(assignment.window_id)
        if len(self.given) <= self.losses:
            raise WindowLost("a machine went away")
        return self.inner.run(assignment)


DRAW = chain(numbers=Script(looks=((1, 2), (3,))), collect=Collect())


def test_a_window_that_was_lost_runs_again(tmp_path):
    losing: list[Losing] = []

    def backend(inner: Backend) -> Backend:
        losing.append(Losing(inner, ATTEMPTS_AT_LOST_WINDOWS))
        return losing[0]

    assert arrived(Desk(tmp_path, DRAW, backend=backend).run()) == [1, 2, 3]
    assert losing[0].given == [1] * ATTEMPTS_AT_LOST_WINDOWS + [1, 2]


def test_a_window_that_is_lost_again_and_again_ends_the_run_and_not_the_application(tmp_path):
    told: list[RunEvent] = []
    desk = Desk(tmp_path, DRAW, backend=lambda inner: Losing(inner, ATTEMPTS_AT_LOST_WINDOWS + 1))
    with pytest.raises(WindowLost, match="went away"):
        desk.run(observers=[told.append])
    failed = [each for each in told if isinstance(each, Failed)]
    assert [each.again for each in failed] == [True] * ATTEMPTS_AT_LOST_WINDOWS + [False]
    assert {(each.operator, each.message) for each in failed} == {(None, "WindowLost: a machine went away")}
    desk.backend = reference
    assert arrived(desk.run()) == [1, 2, 3]
