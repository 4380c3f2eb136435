"""On Spark, slots stay while windows follow each other quickly; the results are those of windows with own jobs."""

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.connection import Listener
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dagkit import Config, Dag, InputOperator, InputPort, Operator, OutputPort, Shutdown, State
from dagkit.backends.spark import SparkBackend
from dagkit.backends.spark.shipping.shipping import Shipped
from dagkit.backends.spark.window import residents
from dagkit.backends.spark.window.daemon import MODULE
from dagkit.backends.spark.window.resident_task import FAMILY, ResidentTask
from dagkit.compiler import compile_application
from dagkit.engine.program.failures import OperatorFailed, WindowLost
from dagkit.engine.program.points import Point, Probe
from dagkit.engine.record.run_events import Failed, RunEvent
from dagkit_operators import Map
from tests.backends.cast import chained
from tests.engine.cast import Desk
from tests.patience import join, within
from tests.processes import below, running

MANY = 500
"""More windows than any test needs."""

pytestmark = pytest.mark.spark


class Numbers(InputOperator):
    out = OutputPort(int)
    sent = State(0)
    folder: str

    def emit_tuples(self) -> None:
        if (Path(self.folder) / "enough").exists():
            raise Shutdown
        for _ in range(2):
            self.out.emit(self.sent)
            self.sent += 1

    def looks_again_in_millis(self) -> int:
        return 0


class Keeps(Operator):
    """Keeps numbers. It fails, or kills its process, when a file says so."""

    numbers = InputPort(int, key=lambda number: number)
    arrived = State[list[int]](list)
    folder: str

    def process(self, item: int) -> None:
        for name in ("kill", "fail"):
            if (Path(self.folder) / name).exists():
                (Path(self.folder) / name).unlink(missing_ok=True)
                if name == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise ValueError("a file says so")
        self.arrived.append(item)


class Counting(SparkBackend):
    stays = in_residents = in_jobs = 0

    def _stay(self, *given: Any) -> None:
        self.stays += 1
        super()._stay(*given)

    def _in_residents(self, *given: Any) -> Any:
        found = super()._in_residents(*given)
        self.in_residents += found is not None
        return found

    def _in_job(self, *given: Any) -> Any:
        self.in_jobs += 1
        return super()._in_job(*given)


class Run:
    def __init__(self, spark: SparkSession, home: Path, slots: int, levels: int = 1) -> None:
        self.spark, self.home, self.slots, self.levels = spark, home, slots, levels
        self.backend = Counting(compile_application(self.draw, Config()), spark)
        self.state: list[Any] = []
        self.failures: list[str] = []

    def draw(self, dag: Dag, _: Any) -> None:
        operators = {
            "numbers": Numbers(folder=str(self.home)),
            "passes": Map[int, int](int),
            "keeps": Keeps(folder=str(self.home)),
        }
        if self.levels == 1:
            del operators["passes"]
        chained(dag, dict.fromkeys([*operators][1:], self.slots), **operators)

    def until(self, has_enough: Callable[[], bool], and_then: Callable[[], object] = lambda: None) -> None:
        """Run windows until this is the case after one; then do something, and run two more windows in residents."""
        reached: list[int] = []

        def probe(point: Point, _: int) -> None:
            if point is not Point.APPENDED:
                return
            if not reached and has_enough():
                and_then()
                reached.append(self.backend.in_residents)
            elif reached and self.backend.in_residents >= reached[0] + 2:
                self.end()

        self.run(probe)

    def end(self) -> None:
        (self.home / "enough").touch()

    def run(self, probe: Probe) -> None:
        def bounded(point: Point, window_id: int) -> None:
            assert window_id < MANY, "slots did not stay, or did not leave"
            probe(point, window_id)

        def observe(event: RunEvent) -> None:
            if isinstance(event, Failed):
                self.failures.append(event.message)

        desk = Desk(self.home, self.draw, backend=lambda _: self.backend)
        self.state = desk.run(probe=bounded, observers=[observe]).state["keeps"]
        assert desk.faults() == []
        arrived = sorted(number for one in self.state for number in one["arrived"])
        assert arrived == list(range(len(arrived))), "each number came once"

    def has_active_jobs(self) -> bool:
        return bool(self.spark.sparkContext.statusTracker().getActiveJobsIds())

    def wait_until_no_job_is_active(self) -> None:
        until = time.monotonic() + within(60)
        while self.has_active_jobs():
            assert time.monotonic() < until, "a job does not end"
            time.sleep(0.01)  # sleeps: between two questions to Spark


@pytest.fixture
def run(request, spark, tmp_path, monkeypatch):
    """A run whose windows count as quick, however slow the machine is; on one level, or as many as a test asks for."""
    monkeypatch.setattr(residents, "QUICKLY_SECONDS", 300.0)
    run = Run(spark, tmp_path, slots=2, levels=getattr(request, "param", 1))
    assert run.backend.program.levels == run.levels
    with closing(run.backend):
        yield run
    run.wait_until_no_job_is_active()


on_one_level_and_two = pytest.mark.parametrize("run", [pytest.param(1, marks=pytest.mark.trial), 2], indirect=True)


@on_one_level_and_two
def test_windows_share_a_job_until_the_backend_is_closed(run):
    run.until(lambda: run.backend.in_residents >= 5)
    assert run.backend.stays < run.backend.in_residents
    assert run.backend.in_jobs >= run.levels, "the first window follows no other"
    assert run.has_active_jobs(), "the slots wait"
    run.backend.close()
    run.wait_until_no_job_is_active()


@pytest.mark.trial
def test_slots_leave_when_no_window_comes(run, monkeypatch):
    monkeypatch.setattr(residents, "QUICKLY_SECONDS", within(2))
    run.until(lambda: run.backend.in_residents >= 2)
    run.wait_until_no_job_is_active()


@pytest.mark.trial
@on_one_level_and_two
def test_a_window_whose_worker_is_killed_runs_again(run):
    run.until(lambda: run.backend.in_residents >= 2, (run.home / "kill").touch)
    assert [message.partition(":")[0] for message in run.failures] == ["WorkerDied"]
    assert run.backend.stays >= 2


@pytest.mark.trial
def test_slots_that_died_between_two_windows_are_replaced(run):
    def kill() -> None:
        before = run.backend.stays
        for daemon in running(MODULE, os.getpid()):
            for worker in below(daemon):
                os.kill(worker, signal.SIGKILL)
        run.wait_until_no_job_is_active()
        assert run.backend.stays == before

    run.until(lambda: run.backend.in_residents >= 2, kill)
    assert run.backend.stays >= 2


@on_one_level_and_two
def test_an_operator_fails_as_in_a_job_of_its_own(run):
    with pytest.raises(OperatorFailed, match="a file says so") as failed:
        run.until(lambda: run.backend.in_residents >= 2, (run.home / "fail").touch)
    assert failed.value.failure.operator == "keeps"


@pytest.mark.parametrize("run", [2], indirect=True)
def test_an_answer_that_was_not_read_is_not_taken_for_that_of_the_next_window(run, monkeypatch):
    look, lost = residents.OtherJobs.look, list[str]()

    def look_once_in_vain(jobs: residents.OtherJobs, own: int, *, at_once: bool = False) -> None:
        if run.backend.in_residents >= 2 and not lost:
            lost.append("a window")
            raise WindowLost("Spark does not say which jobs are active")
        look(jobs, own, at_once=at_once)

    monkeypatch.setattr(residents.OtherJobs, "look", look_once_in_vain)
    run.until(lambda: bool(lost))
    assert lost
    assert len(run.failures) == 1


def test_an_error_of_a_slot_is_not_taken_for_the_end_of_its_connection():
    with Listener(None, FAMILY, authkey=b"key") as listener:
        task = ResidentTask(Shipped("digest", b""), str(listener.address), b"key")
        with ThreadPoolExecutor(1) as pool:
            slot = pool.submit(task, 0, ())
            with listener.accept() as connection:
                assert connection.poll(within(30))
                assert connection.recv_bytes() == bytes(4)
                connection.send_bytes(b"")  # nothing that can be read
                with pytest.raises(EOFError, match="Ran out of input"):
                    slot.result(within(120))


@pytest.mark.trial
def test_another_job_gets_cores_while_windows_go_on(run):
    counted: list[int] = []

    def count() -> None:
        counted.append(run.spark.range(0, 100, 1, 4).count())

    query = Thread(target=count)

    def probe(point: Point, _: int) -> None:
        if point is Point.APPENDED and run.backend.in_residents >= 3 and not query.ident:
            query.start()
        if query.ident and not query.is_alive():
            run.end()

    run.run(probe)
    join(query, seconds=120)
    assert counted == [100]


@pytest.mark.trial
def test_slots_that_outnumber_the_cores_do_not_stay(spark, tmp_path):
    run = Run(spark, tmp_path, slots=3)
    with closing(run.backend):
        run.run(lambda *_: run.end() if run.backend.in_jobs >= 5 else None)
    assert run.backend.in_residents == 0
