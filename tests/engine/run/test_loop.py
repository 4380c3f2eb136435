"""The loop: when it looks, when it ends, what it reports, and that windows with nothing in them leave nothing."""

import ast
import logging
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dagkit import Config, Dag, InputPort, Operator, OperatorContext, OutputPort, State, StatelessPartitioner
from dagkit.api.running import Until
from dagkit.compiler import compile_application
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.run_events import Committed, Ended, Found, Measured, Resumed, RunEvent, Started
from dagkit.engine.run import loop as loops
from dagkit.engine.run.launch_record import LaunchRecord, differences
from dagkit.ledger import Ledger
from dagkit.testing import FakeClock
from dagkit.testing.crashes import CrashAfter
from tests.engine.cast import Collect, Desk, Digits, Draw, Ranges, Script, arrived, chain
from tests.patience import within


def told(*looks: tuple[int, ...], **properties: Any) -> Draw:
    return chain(script=Script(looks=looks, **properties), collect=Collect())


def early_and_late(dag: Dag, conf: object) -> None:
    """Two scripts, of which one finds nothing at first, and looks again after five seconds."""
    dag.add_operator("early", Script(looks=((1,), (2,)))) >> dag.add_operator("a", Collect())
    dag.add_operator("late", Script(looks=((), (3,)), pause_millis=5000)) >> dag.add_operator("b", Collect())


# ---- looking, and ending


def test_once_ends_when_all_is_done_that_was_found_and_appends_nothing_if_there_is_nothing_new(tmp_path):
    desk = Desk(tmp_path, told((1,), (2, 3)))
    loop = desk.run()
    assert (arrived(loop), loop.checkpoint.window) == ([1, 2, 3], 2)
    before = desk.blocks()
    assert (desk.run().checkpoint.window, desk.blocks()) == (2, before)


def test_idle_ends_after_a_look_that_finds_nothing(tmp_path):
    clock = FakeClock()
    began = clock.now()
    loop = Desk(tmp_path, told((1,), (2,), ()), until=Until.IDLE, clock=clock).run()
    assert (arrived(loop), clock.now()) == ([1, 2], began)


@pytest.mark.parametrize(
    ("until", "late", "seconds"),
    [
        (Until.ONCE, [], 0),  # it looks no more where nothing was found
        (Until.IDLE, [3], 6),  # late finds at five, and early looks once more a second later
    ],
)
def test_only_idle_looks_again_wherever_nothing_was_found_before_there_was_work(tmp_path, until, late, seconds):
    clock = FakeClock()
    began = clock.now()
    loop = Desk(tmp_path, early_and_late, until=until, clock=clock).run()
    assert (arrived(loop, "a"), arrived(loop, "b")) == ([1, 2], late)
    assert clock.now() - began == timedelta(seconds=seconds)


def test_windows_without_work_are_not_run_and_not_appended(tmp_path):
    clock, seen = FakeClock(), []
    desk = Desk(tmp_path, told((1,), (), (), (2,), pause_millis=700), until=Until.STOPPED, clock=clock)

    def observe(happening: RunEvent) -> None:
        seen.append((happening, clock.now()))
        if isinstance(happening, Committed) and happening.window_id == 2:
            loop.stop()

    began = clock.now()
    loop = desk.loop(observers=[observe])
    loop.run()
    commits = [at - began for happening, at in seen if isinstance(happening, Committed)]
    assert commits == [timedelta(0), timedelta(milliseconds=1400)]
    # a Seed, a schema, two findings; two windows
    assert desk.blocks() == {"script": 4, loop.run_state.journal.chain.name: 5}


def test_stopped_runs_until_it_is_stopped(tmp_path):
    desk = Desk(tmp_path, told((), *((number,) for number in range(50))), until=Until.STOPPED)
    began = threading.Event()
    loop = desk.loop(observers=[lambda happening: began.set() if isinstance(happening, Resumed) else None])
    running = threading.Thread(target=loop.run)
    running.start()
    assert began.wait(within(30))
    loop.stop()
    running.join(within(30))
    assert not running.is_alive()
    assert arrived(loop) == list(range(loop.checkpoint.window))


def test_a_signal_may_stop_it_while_it_wakes_up(tmp_path):
    """The handler runs in the thread that it interrupts, wherever that is: here, while it holds what wakes it."""
    loop = Desk(tmp_path, told((1,))).loop()

    def interrupted() -> None:
        with loop.run_state.woken._cond:
            loop.stop()

    thread = threading.Thread(target=interrupted, daemon=True)
    thread.start()
    thread.join(within(60))
    assert not thread.is_alive()
    loop.run()
    assert arrived(loop) == []


def test_what_is_in_flight_when_it_is_stopped_is_committed(tmp_path):
    desk = Desk(tmp_path, told((1,), (2,), (3,)), until=Until.STOPPED)
    loop = desk.loop(observers=[lambda happening: loop.stop() if isinstance(happening, Started) else None])
    loop.run()
    assert (arrived(loop), loop.checkpoint.window) == ([1], 1)
    assert arrived(Desk(tmp_path, told((1,), (2,), (3,))).run()) == [1, 2, 3]


def test_no_more_windows_than_were_asked_for(tmp_path):
    desk = Desk(tmp_path, told((1,), (2,), (3,)))
    assert [arrived(desk.run(windows=2)), arrived(desk.run(windows=2))] == [[1, 2], [1, 2, 3]]


def test_it_ends_when_every_input_says_that_nothing_will_ever_come(tmp_path):
    clock = FakeClock()
    desk = Desk(tmp_path, told((1,), ends=True), until=Until.STOPPED, clock=clock)
    assert arrived(desk.run()) == [1]


def test_an_input_that_ended_stays_ended_after_a_restart(tmp_path):
    class Ending(Script):
        looked: ClassVar[list[int]] = []

        def emit_tuples(self) -> None:
            self.looked.append(self.at)
            super().emit_tuples()

    def draw(dag: Dag, conf: object) -> None:
        dag.add_operator("ending", Ending(looks=((1,),), ends=True)) >> dag.add_operator("a", Collect())
        dag.add_operator("script", Script(looks=((1,), (2,), (3,)))) >> dag.add_operator("b", Collect())

    desk = Desk(tmp_path, draw)
    desk.run(windows=3)
    assert Ending.looked == [0, 1]
    assert arrived(desk.run(), "b") == [1, 2, 3]
    assert Ending.looked == [0, 1]


def test_what_was_found_and_the_state_that_found_it_are_in_the_ledger_together(tmp_path):
    desk = Desk(tmp_path, told((1,), (2,)))
    for point in (Point.PLANNED, Point.RUNNING, Point.STAGED):
        desk.crash(CrashAfter(point))
    assert desk.blocks()["script"] == 3  # a Seed, a schema and one finding, which was found once
    assert arrived(desk.run()) == [1, 2]


# ---- application windows, and the end


class Told(Operator):
    """Emits the items that it was given, in order."""

    input = InputPort(int)
    output = OutputPort(str)
    count = State(0)

    def process(self, item: int) -> None:
        self.count += 1

    def drained(self) -> None:
        self.output.emit(f"drained after {self.count}")

    def end_window(self) -> None:
        self.output.emit(f"end of {self.count}")


def ending(*numbers: int) -> Draw:
    """One number in each window, to an operator that reports the ends that it learns of."""
    return chain(script=Script(looks=tuple((number,) for number in numbers)), told=Told(), collect=Collect())


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, ["end of 1", "end of 2", "drained after 2", "end of 2"]),
        (2, ["end of 2", "drained after 2", "end of 2"]),
        (3, ["drained after 2", "end of 2"]),
    ],
    ids=["every window is one", "a window more, that closes theirs", "the window that is open anyway"],
)
def test_operators_learn_once_that_nothing_more_comes(tmp_path, count, said):
    def draw(dag: Dag, conf: object) -> None:
        ending(1, 2)(dag, conf)
        dag.set_operator_attribute(dag.operator("told"), OperatorContext.APPLICATION_WINDOW_COUNT, count)

    desk = Desk(tmp_path, draw)
    assert [arrived(desk.run()), arrived(desk.run())] == [said, said]


def test_operators_learn_of_the_end_though_the_run_was_cut_off_there_and_again_when_more_has_come(tmp_path):
    desk, first = Desk(tmp_path, ending(1)), ["end of 1", "drained after 1", "end of 1"]
    assert desk.crash(CrashAfter(Point.STAGED, 2)) == 1
    assert arrived(desk.run()) == first
    assert arrived(Desk(tmp_path, ending(1, 2)).run()) == [*first, "end of 2", "drained after 2", "end of 2"]


class Noting(Script):
    heard: ClassVar[list[tuple[str, int]]] = []

    def checkpointed(self, window_id: int) -> None:
        self.heard.append(("checkpointed", window_id))

    def committed(self, window_id: int) -> None:
        self.heard.append(("committed", window_id))


def test_an_input_hears_of_the_checkpoint_and_then_of_the_commit(tmp_path):
    Noting.heard.clear()
    Desk(tmp_path, chain(noting=Noting(looks=((1,), (2,))), collect=Collect())).run()
    assert Noting.heard == [("checkpointed", 1), ("committed", 1), ("checkpointed", 2), ("committed", 2)]


# ---- who looks on


def test_an_observer_that_raises_receives_no_more_events(tmp_path, caplog):
    heard, others = list[RunEvent](), list[RunEvent]()

    def clumsy(happening: RunEvent) -> None:
        heard.append(happening)
        raise ValueError("clumsy")

    with caplog.at_level(logging.ERROR):
        loop = Desk(tmp_path, told((1,), (2,))).run(observers=[clumsy, others.append])
    assert arrived(loop) == [1, 2]
    assert len(heard) == 1
    window = [Found, Started, Committed, Measured]
    assert [type(each) for each in others] == [Resumed, *window, *window, Ended]
    assert "an observer raised, and is not called again" in caplog.text


# ---- trying again


class Fragile(Operator):
    failures: ClassVar[int] = 0
    input = InputPort(int)
    arrived = State[list[int]](list)

    def process(self, item: int) -> None:
        if Fragile.failures > 0:
            Fragile.failures -= 1
            raise ValueError(f"no {item}")
        self.arrived.append(item)


@pytest.mark.parametrize(
    ("attempts", "failures", "survives"), [(None, 1, False), (0, 1, False), (2, 2, True), (2, 3, False)]
)
def test_a_window_is_tried_again_as_often_as_was_asked(tmp_path, attempts, failures, *, survives):
    conf = {} if attempts is None else {"dt.operator.fragile.attr.RECOVERY_ATTEMPTS": str(attempts)}
    desk = Desk(tmp_path, chain(script=Script(looks=((1, 2), (3,))), fragile=Fragile()), conf=conf)
    Fragile.failures = failures
    if not survives:
        with pytest.raises(OperatorFailed, match="fragile failed in window 1, slot 0: ValueError: no 1"):
            desk.run()
        Fragile.failures = 0
    assert (arrived(desk.run(), "fragile"), desk.faults()) == ([1, 2, 3], [])


def compiled(readers, waits_every=0):
    def graph(dag, conf):
        digits = dag.add_operator("digits", Digits(waits_every=waits_every))
        dag.add_operator("ranges", Ranges()) >> digits >> dag.add_operator("collect", Collect())
        dag.set_operator_attribute(digits, OperatorContext.PARTITIONER, StatelessPartitioner(readers))

    return compile_application(graph, Config.of({}))


@pytest.mark.parametrize(
    ("now", "changes"),
    [
        (compiled(1), None),
        (compiled(1, waits_every=3), ("operator digits: property waits_every changes from 0 to 3",)),
    ],
)
def test_the_partitions_that_a_run_ended_with_are_no_change(tmp_path, now, changes):
    store = Ledger.create(str(tmp_path), durable=False).store
    LaunchRecord.of(compiled(1), compiled(2).plan, "1", datetime.now(UTC)).write(store)
    differing = differences(store, now.plan, 1)
    assert (None if differing is None else differing.changes) == changes


OF_THE_COMMITTER = {"format", "window", "launched", "began", "reported"}
OF_EARLIER_VERSIONS = {"watermarks"}
ONLY_IF_WANTED = {"receipts", "receipted"}
KNOWN = {"in_flight", "run_part", "run_state"}
"""The modules of the room of the parts that the loop and the committer may import: no part is among them."""


def test_each_field_of_a_checkpoint_is_computed_by_one_part(tmp_path):
    loop = Desk(tmp_path, chain(script=Script(looks=((1,),)), collect=Collect())).loop()
    computed: list[str] = []
    for part in loop.parts:

        def after(ended, saved, compute=part.after):
            fields = compute(ended, saved)
            computed.extend(fields)
            return fields

        part.after = after
    loop.run()
    assert loop.checkpoint.window == 1
    assert sorted(computed) == sorted(
        Checkpoint().model_dump().keys() - OF_THE_COMMITTER - OF_EARLIER_VERSIONS - ONLY_IF_WANTED
    )


def test_the_loop_and_the_committer_import_no_part():
    room = Path(loops.__file__).parent
    imported = {
        statement.module.removeprefix("dagkit.engine.parts.")
        for name in ("loop.py", "commit.py")
        for statement in ast.walk(ast.parse((room / name).read_text(encoding="utf-8")))
        if isinstance(statement, ast.ImportFrom) and statement.module.startswith("dagkit.engine.parts.")
    }
    assert imported <= KNOWN
