"""Input operators look for more on the driver, set up once in a launch; each look gets the window that it is for."""

import threading
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from pydantic import PrivateAttr

from dagkit import Dag, InputOperator, OutputPort, State
from dagkit.api.running import Context, Until
from dagkit.engine.inputs.event_times import Watermark, idle_instants, of_elements
from dagkit.engine.parts.pending import renewed
from dagkit.engine.parts.run_part import Want
from dagkit.engine.program.address import Address
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.record.run_events import Committed, Found, RunEvent
from dagkit.engine.work.item import Deferral, ItemTimes, WorkItem
from dagkit.ranges import OFFSET_INFINITY
from dagkit.testing import FakeClock
from tests.engine.cast import Collect, Desk, Digits, Ranges, Script, arrived, chain
from tests.patience import within


class Heard(Script):
    """Records its callbacks, in order."""

    heard: ClassVar[list[str]] = []

    def setup(self, context: Context) -> None:
        self.heard.append("setup")

    def begin_window(self, window_id: int) -> None:
        self.heard.append(f"begin_{window_id}")

    def handle_idle_time(self) -> None:
        self.heard.append("idle")

    def end_window(self) -> None:
        self.heard.append("end")

    def teardown(self) -> None:
        self.heard.append("teardown")


def test_a_look_in_vain_is_followed_by_one_for_the_same_window(tmp_path):
    Heard.heard.clear()
    draw = chain(heard=Heard(looks=((1,), (), (), (2,)), ends=True), collect=Collect())
    loop = Desk(tmp_path, draw, until=Until.STOPPED, clock=FakeClock()).run()
    assert (arrived(loop), loop.checkpoint.window) == ([1, 2], 2)
    looks = ["begin_1 end", "begin_2 idle end", "begin_2 idle end", "begin_2 end", "begin_3 end"]
    assert Heard.heard == ["setup", *" ".join(looks).split(), "teardown"]


class Lister(InputOperator):
    """Lists in the background: each list is emitted once it is complete."""

    out = OutputPort(int)
    may_end: ClassVar[list[threading.Event]] = []
    """One event for each list: the list is complete after it is set."""
    fails: bool = False
    listed = State(0)
    _context: Any = PrivateAttr(default=None)
    _list: Future[int] | None = PrivateAttr(default=None)

    def setup(self, context: Context) -> None:
        self._context = context

    def emit_tuples(self) -> None:
        if self._list is not None:
            self.out.emit(self._list.result(within(30)))
            self.listed += 1
            self._list = None
        elif self.listed < len(self.may_end):
            self._list = self._context.in_background(self._make)

    def _make(self) -> int:
        assert self.may_end[self.listed].wait(within(30)), "the list is allowed to end"
        if self.fails:
            raise OSError(5, "Input/output error")
        return self.listed


LISTING = chain(lister=Lister(), collect=Collect())


def complete(count: int) -> list[threading.Event]:
    events = [threading.Event() for _ in range(count)]
    for event in events:
        event.set()
    return events


@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE])
def test_no_launch_ends_while_an_input_works_in_the_background(until, tmp_path):
    Lister.may_end = complete(3)
    assert arrived(Desk(tmp_path, LISTING, until=until, clock=FakeClock()).run()) == [0, 1, 2]


def test_windows_run_while_an_input_works_in_the_background(tmp_path):
    """The second list ends only after the third window was committed: on the loop's thread it never would."""
    Lister.may_end = complete(2)
    Lister.may_end[1].clear()
    committed: list[int] = []

    def draw(dag: Dag, conf: object) -> None:
        LISTING(dag, conf)
        dag.add_operator("script", Script(looks=((7,), (8,), (9,)))) >> dag.add_operator("other", Collect())

    def observe(event: RunEvent) -> None:
        if isinstance(event, Committed):
            committed.append(event.window_id)
            if len(committed) == 3:
                Lister.may_end[1].set()

    loop = Desk(tmp_path, draw, until=Until.IDLE).run(observers=[observe])
    assert (arrived(loop), arrived(loop, "other")) == ([0, 1], [7, 8, 9])


def test_what_work_in_the_background_raises_ends_the_launch_and_names_the_operator(tmp_path):
    Lister.may_end = complete(1)
    with pytest.raises(OperatorFailed, match=r"(?s)lister.*Input/output error"):
        Desk(tmp_path, chain(lister=Lister(fails=True), collect=Collect()), clock=FakeClock()).run()


def test_a_launch_that_is_stopped_does_not_wait_for_work_in_the_background(tmp_path):
    Lister.may_end = [threading.Event()]
    loop = Desk(tmp_path, LISTING, until=Until.STOPPED).loop()
    runs = threading.Thread(target=loop.run)
    runs.start()
    loop.stop()
    runs.join(within(30))
    assert not runs.is_alive()
    Lister.may_end[0].set()


def test_each_look_reports_the_work_that_it_found(tmp_path):
    found: list[RunEvent] = []
    draw = chain(ranges=Ranges(looks=((5,), (1, 2, 3), (4, 4))), digits=Digits())
    loop = Desk(tmp_path, draw).run(observers=[found.append])
    assert [event for event in found if isinstance(event, Found)] == [
        Found("ranges", 1, 5, 0, {"byte": 5}),
        Found("ranges", 3, 6, 0, {"byte": 6}),
        Found("ranges", 2, 8, 0, {"byte": 8}),
    ]
    assert loop.parts.inputs._work == {}


# ---- what inputs want


@dataclass
class Driven:
    """An input operator on the driver, as the loop sees it."""

    next_look: datetime | None = None
    in_vain: bool = False
    is_busy: bool = False
    ended: bool = False


NOW = datetime(2024, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)
FOUND, IN_VAIN = Driven(LATER), Driven(LATER, in_vain=True)
LOOKS, WAITS = {Want.LOOK: LATER}, {Want.LOOK: LATER, Want.MORE: NOW}


@pytest.mark.parametrize(
    ("until", "driven", "wants"),
    [
        pytest.param(Until.STOPPED, [IN_VAIN], WAITS, id="stopped: it goes on when nothing was found"),
        pytest.param(Until.ONCE, [FOUND], WAITS, id="once: it looks again after it found something"),
        pytest.param(Until.ONCE, [IN_VAIN], {}, id="once: it looks no more after a look in vain"),
        pytest.param(Until.ONCE, [IN_VAIN, FOUND], WAITS, id="once: all look until none finds anything"),
        pytest.param(Until.IDLE, [IN_VAIN], LOOKS, id="idle: it looks when that is due, and does not wait for it"),
        pytest.param(Until.DRAINED, [FOUND], {}, id="drained: it looks no more"),
        pytest.param(Until.STOPPED, [Driven(ended=True)], {}, id="an input that has ended wants nothing"),
        pytest.param(Until.STOPPED, [Driven(is_busy=True)], {Want.BUSY: NOW}, id="a busy input is waited for"),
        pytest.param(Until.ONCE, [Driven(is_busy=True), FOUND], {Want.BUSY: NOW, **WAITS}, id="and others look"),
    ],
)
def test_what_inputs_want_depends_on_how_long_the_launch_runs(tmp_path, until, driven, wants):
    inputs = Desk(tmp_path, chain(script=Script(), collect=Collect()), until=until).loop().parts.inputs
    inputs._at_work = {str(number): each for number, each in enumerate(driven)}
    assert dict(inputs.wants(NOW, {})) == wants


NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ACTIVE = WorkItem(Address("read.in"), (1,), "a", 0, OFFSET_INFINITY, times=ItemTimes(NOON + 5 * MINUTE))
IDLE = replace(
    ACTIVE, number=(2,), times=ItemTimes(NOON), deferral=Deferral(NOON + MINUTE, in_vain=True, idle_since=NOON)
)


def test_idle_work_holds_back_until_its_time_is_over():
    for minutes, held in ((1, NOON), (2, ACTIVE.times.reached)):
        now = NOON + minutes * MINUTE
        assert of_elements([ACTIVE, IDLE], None, 2 * MINUTE, now) == Watermark(held)
        assert of_elements([ACTIVE, IDLE], None, None, now) == Watermark(NOON)
    assert of_elements([IDLE], ACTIVE.times.reached, 2 * MINUTE, NOON + 2 * MINUTE) == Watermark(
        ACTIVE.times.reached, is_idle=True
    )


def test_the_instant_at_which_work_becomes_idle_is_known_before():
    since = [NOON, None, NOON + MINUTE]
    assert list(idle_instants(since, 2 * MINUTE, NOON + MINUTE)) == [NOON + 2 * MINUTE, NOON + 3 * MINUTE]
    assert list(idle_instants(since, 2 * MINUTE, NOON + 2 * MINUTE)) == [NOON + 3 * MINUTE]
    assert list(idle_instants(since, None, NOON)) == []


def test_a_new_launch_asks_idle_work_before_it_lets_it_go():
    (item,) = renewed([IDLE])
    assert (item.deferral.due, item.deferral.idle_since) == (None, None)
    assert renewed([replace(IDLE, deferral=Deferral(idle_since=NOON, in_vain=True))]) == [item]


class Counts(InputOperator):
    """Emits one number, and counts the commits and teardowns that it hears of."""

    kind = "unrecorded.counts/1"
    out = OutputPort(int)
    asks: bool = True
    heard = State[list[str]](list)
    sent = State(False)

    def emit_tuples(self):
        if not self.sent:
            self.out.emit(1)
            self.sent = True

    def committed(self, window_id):
        self.heard = [*self.heard, "commit"] if len(self.heard) < 2 else self.heard

    def teardown(self):
        self.heard = [*self.heard, "teardown"]

    @property
    def has_unrecorded(self):
        return self.asks


@pytest.mark.parametrize(("asks", "heard"), [(True, ["commit", "commit", "teardown"]), (False, [])])
def test_the_next_launch_knows_what_was_learned_after_the_last_item(tmp_path, asks, heard):
    def graph(dag, conf):
        dag.add_operator("counts", Counts(asks=asks)) >> dag.add_operator("collect", Collect())

    desk = Desk(tmp_path, graph, until=Until.IDLE, clock=FakeClock())
    desk.run()
    assert desk.loop().run_state.journal.state_of("counts").get("heard", []) == heard
    assert desk.faults() == []
