"""From topic to topic and to files: each message once, whatever is killed, and whenever."""

import contextlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag, InputPort, OutputPort, RowOperator, Until
from dagkit.engine.program.points import Point
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.testing import Crash, CrashAfter
from dagkit_operators import Map, SqlWriter
from dagkit_operators.kafka.topics import Partition, Topics, Unanswered
from tests.backends.cast import chained
from tests.engine.cast import Desk, Digits, Ranges
from tests.operators.driver_kills import POINTS, kill_once, steps_of
from tests.operators.event_time.trials import PHASES, add, timed, written
from tests.operators.kafka.copying import Backend, Copy, copy, written_to
from tests.operators.sql.sql_cast import Row, TestDatabase
from tests.patience import join, within
from tests.processes import limited, run_program
from tests.services.broker import QUIET, Broker, running

pytestmark = pytest.mark.slow

SEED = 20261123
PROCESSES = multiprocessing.get_context("forkserver")
"""Processes that begin with everything imported."""
PROCESSES.set_forkserver_preload(["tests.operators.kafka.copying", "confluent_kafka.admin", "pyarrow.ipc"])


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    with running(tmp_path_factory.mktemp("own")) as broker:
        yield broker


class Trials:
    def __init__(self, broker: Broker, home: Path, *, endless: bool = False) -> None:
        self.broker, self.home, self.endless = broker, home, endless
        self.source, self.target = broker.topic(3), broker.topic(2)
        self.before = self.sent = 0
        self.random = random.Random(SEED)

    def produce(self) -> None:
        self.before = self.sent
        for partition in range(3):
            count = self.random.randint(1, 9)
            self.broker.produce(self.source, range(self.sent, self.sent + count), partition)
            self.sent += count

    @property
    def application(self) -> Copy:
        out = str(self.home / "out")
        return Copy(address=self.broker.address, source=self.source, target=self.target, out=out, endless=self.endless)

    def begin(self, backend: Backend, freezes_at: Point | None = None, **more: Any) -> tuple[BaseProcess, Connection]:
        """Launch the application in a process of its own, which reports each step."""
        steps, sender = PROCESSES.Pipe(duplex=False)
        application = self.application.model_copy(update=more)
        process = PROCESSES.Process(target=copy, args=(self.home, application, backend, sender, freezes_at))
        process.start()
        sender.close()
        return process, steps

    def end(self, backend: Backend, **more: Any) -> int | None:
        process, steps = self.begin(backend, **more)
        list(steps_of(steps))
        join(process, seconds=120)
        return process.exitcode

    def kill_driver(self, backend: Backend) -> bool:
        process, steps = self.begin(backend)
        for _ in zip(range(self.random.randint(1, 9)), steps_of(steps), strict=False):
            pass
        process.kill()
        join(process, seconds=120)
        return process.exitcode != 0

    def kill_worker(self, backend: Backend) -> bool:
        """Kill the process that has one of the messages that were sent last."""
        mark = self.home / f"killed-{self.sent}"
        self.end(backend, deadly=self.random.randrange(self.before, self.sent), killed=str(mark))
        return mark.exists()

    def kill_broker(self, backend: Backend) -> bool:
        """Kill the broker at any step of the driver, which waits until there is one."""
        process, steps = self.begin(backend)
        after, number = self.random.randint(1, 9), 0
        for number, _ in enumerate(steps_of(steps), start=1):
            if number == after:
                self.broker.kill()
                self.broker.start()
        join(process, seconds=120)
        assert process.exitcode == 0
        return number >= after

    def check(self) -> None:
        expected = list(range(self.sent))
        copied = sorted(int(value) for values in self.broker.committed(self.target, 2) for value in values)
        assert copied == expected
        assert written_to(self.home / "out") == expected
        assert self.endless or verify(Ledger.open(str(self.home / "app"))).is_complete


def test_a_driver_that_is_killed_loses_and_doubles_nothing(kafka, tmp_path):
    trial = Trials(kafka, tmp_path)
    while True:  # until a driver is killed before it has copied everything
        trial.produce()
        if trial.kill_driver("reference"):
            break
    assert trial.end("reference") == 0
    trial.check()


@pytest.mark.trial
@pytest.mark.parametrize("endless", [False, True], ids=["ranges", "without an end"])
def test_a_driver_that_crashes_again_and_again(kafka, tmp_path, machine, endless):
    trial, crashed = Trials(kafka, tmp_path, endless=endless), 0
    count = 6 if machine.spark else 50
    for _ in range(count):
        trial.produce()
        probe = CrashAfter(trial.random.choice([point for point in Point if point is not Point.HALF_FINISHED]))
        try:
            launch(trial.application, until="idle", machine=machine, path=tmp_path / "app", probe=probe)
        except Crash:
            crashed += 1
    launch(trial.application, until="idle", machine=machine, path=tmp_path / "app")
    assert crashed >= count * 0.8
    trial.check()


@pytest.mark.trial
@pytest.mark.parametrize("backend", ["reference", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("kill", [Trials.kill_driver, Trials.kill_worker, Trials.kill_broker])
def test_processes_that_are_killed_again_and_again(own, tmp_path, kill, backend, trials):
    trial = Trials(own, tmp_path)
    kills = 0
    while kills < (trials if backend == "reference" else -(-trials // 10)):
        trial.produce()
        kills += kill(trial, backend)
    assert trial.end(backend) == 0
    trial.check()


@pytest.mark.trial
@pytest.mark.parametrize(
    ("backend", "point"),
    [
        *(("reference", point) for point in (Point.STAGED, Point.APPENDED, Point.DELIVERED)),
        pytest.param("spark", Point.APPENDED, marks=pytest.mark.spark),
    ],
)
def test_a_driver_that_was_frozen_and_overtaken_doubles_nothing(own, tmp_path, backend, point):
    trial = Trials(own, tmp_path)
    trial.produce()
    frozen, steps = trial.begin(backend, point)
    try:
        assert any(step.endswith(point) for step in iter(steps.recv, None))
        trial.produce()
        assert trial.end(backend) == 0
        os.kill(frozen.pid, signal.SIGCONT)
        assert not [step for step in steps_of(steps) if step.endswith(Point.DELIVERED)]
        join(frozen, seconds=120)
    finally:
        frozen.kill()
    assert frozen.exitcode == 1
    trial.check()


@pytest.mark.trial
def test_a_broker_that_was_killed_is_asked_with_its_new_epoch(own):
    """The client library would ask with the old leader epoch, and the broker refuses that."""
    topics, one = Topics({"bootstrap.servers": own.address, **QUIET}), Partition(own.topic(), 0)
    own.produce(one.topic, range(3))
    assert topics.ends([one]) == {one: 3}
    own.kill()
    with pytest.raises(Unanswered):
        topics.ends([one])
    own.start()
    until = time.monotonic() + within(60)
    while time.monotonic() < until:
        with contextlib.suppress(Unanswered):
            assert topics.ends([one]) == {one: 3}
            return
    raise AssertionError("the broker answers, and the client does not understand it")


LOOKS = ((4, 3), (5,), (2, 2), (7,), (1, 1, 1))
EXPECTED = [(number, f"row {number}") for number in range(26)]
NUMBERS = "SELECT number, text FROM numbers ORDER BY number"


class Kills(RowOperator):
    input = InputPort(int)
    output = OutputPort(int)
    at: int
    marker: str

    def process(self, item: int) -> Iterator[int]:
        if item == self.at:
            kill_once(Path(self.marker))
        yield item


@pytest.mark.trial
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(5))
def test_workers_and_the_driver_on_spark_are_killed(tmp_path, spark, seed):
    drawn, sqlite = random.Random(seed), TestDatabase(f"sqlite:///{tmp_path}/rows.db")
    at = drawn.randrange(26)

    def draw(dag: Dag, conf: object) -> None:
        kills, rows = Kills(at=at, marker=str(tmp_path / "killed")), Map(lambda number: Row(number, f"row {number}"))
        write = SqlWriter(table="numbers", record_type=Row, **sqlite.settings)
        chained(dag, ranges=Ranges(looks=LOOKS), digits=Digits(), kills=kills, rows=rows, write=write)

    machine, path = Machine(spark=spark), tmp_path / "app"
    crash = CrashAfter(drawn.choice(POINTS), drawn.randint(1, 4))
    try:
        launch(draw, until="idle", machine=machine, path=path, probe=crash)
    except Crash:
        launch(draw, until="idle", machine=machine, path=path)
    assert (tmp_path / "killed").exists()
    assert sqlite.rows(NUMBERS) == EXPECTED
    assert list(verify(Ledger.open(path)).faults) == []


ALL_POINTS = [point for point in Point if point is not Point.HALF_FINISHED]
IN_EACH_WINDOW = [Point.PLANNED, Point.RUNNING, Point.STAGED, Point.APPENDED]
LATE = ["2024-01-01T00:00:01+00:00 a 1", "2024-01-01T00:00:03+00:00 a 3"]
SUMMED = {
    "sessions-out": [
        *("a 0 8 4 0", "a 12 17 12 0", "a 12 21 28 1", "b 17 29 61 0", "b 41 46 41 0", "b 9 14 9 0"),
        *("c 20 27 42 0", "c 20 35 98 1", "c 41 46 41 0", "c 60 65 60 0"),
    ],
    "sessions-late-out": LATE,
    "tens-out": [
        *("a 0 10 4 0", "a 10 20 28 0", "b 0 10 9 0", "b 10 20 17 0", "b 20 30 44 0", "b 40 50 41 0"),
        *("c 20 30 68 0", "c 30 40 30 0", "c 40 50 41 0", "c 60 70 60 0"),
    ],
    "tens-late-out": LATE,
}


@pytest.mark.trial
def test_crashes_of_each_launch_change_no_result(tmp_path, trial):
    drawn = random.Random(trial)
    desk = Desk(tmp_path, timed(tmp_path, partitions=drawn.randint(1, 3)), until=Until.IDLE)
    crashes = 0
    for phase in range(len(PHASES)):
        add(tmp_path, phase)
        last = desk.loop().run_state.checkpoint.window
        first = CrashAfter(drawn.choice(IN_EACH_WINDOW), last + 1)
        crashes += desk.crash(first, CrashAfter(drawn.choice(ALL_POINTS)))
        desk.run()
    assert crashes >= len(PHASES)
    assert written(tmp_path) == SUMMED
    assert desk.faults() == []


@pytest.mark.trial
def test_workers_and_the_driver_on_spark_crash(tmp_path, spark, spark_trial):
    drawn, path = random.Random(spark_trial), tmp_path / "app"
    at = drawn.choice([second for phase in PHASES for folder in phase for _, second in folder])
    for phase in range(len(PHASES)):
        add(tmp_path, phase)
        draw, crash = timed(tmp_path, at=at), CrashAfter(drawn.choice(ALL_POINTS))
        try:
            launch(draw, until="idle", machine=Machine(spark=spark), path=path, probe=crash)
        except Crash:
            launch(draw, until="idle", machine=Machine(spark=spark), path=path)
    assert (tmp_path / "killed").exists()
    assert written(tmp_path) == SUMMED
    assert list(verify(Ledger.open(tmp_path / "app")).faults) == []


@pytest.mark.trial
@pytest.mark.spark
def test_a_driver_on_spark_is_killed(tmp_path, spark_trial):
    drawn = random.Random(spark_trial)
    command = [sys.executable, "-m", "tests.operators.event_time.trials", str(tmp_path)]
    killed_in = drawn.randrange(len(PHASES))
    for phase in range(len(PHASES)):
        add(tmp_path, phase)
        if phase == killed_in:
            at = drawn.choice(ALL_POINTS)
            with limited(subprocess.Popen(command, stdout=subprocess.PIPE, text=True), 120) as process:  # noqa: S603 - our own
                assert any(line.endswith(f" {at}\n") for line in process.stdout), f"unreported {at}"
                process.kill()
            run_program(command, seconds=120)
        else:
            Desk(tmp_path, timed(tmp_path), until=Until.IDLE).run()
    assert written(tmp_path) == SUMMED
    assert list(verify(Ledger.open(tmp_path / "app")).faults) == []
