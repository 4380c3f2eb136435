"""From topic to topic and to files: each message once, whatever is killed, and whenever."""

import contextlib
import multiprocessing
import os
import random
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from dagkit.engine.program.points import Point
from dagkit.launching import launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.testing.crashes import Crash, CrashAfter
from dagkit_operators.kafka.topics import Partition, Topics, Unanswered
from tests.operators.driver_kills import steps_of
from tests.operators.kafka.copying import Backend, Copy, copy, written_to
from tests.patience import join, within
from tests.services.broker import QUIET, Broker, running

pytestmark = pytest.mark.slow

SEED = 20261123
PROCESSES = multiprocessing.get_context("forkserver")
"""Processes that begin with everything imported."""
PROCESSES.set_forkserver_preload(["tests.operators.kafka.copying", "confluent_kafka.admin", "pyarrow.ipc"])


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A broker that tests may kill."""
    with running(tmp_path_factory.mktemp("own")) as broker:
        yield broker


class Trials:
    """Messages that are copied while something is killed."""

    def __init__(self, broker: Broker, home: Path, *, endless: bool = False) -> None:
        self.broker, self.home, self.endless = broker, home, endless
        self.source, self.target = broker.topic(3), broker.topic(2)
        self.before = self.sent = 0
        self.random = random.Random(SEED)  # noqa: S311 - it chooses what is killed

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
        """Launch the application, and let it copy everything; return its exit code."""
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
        """Every message is in the topic and in the files once."""
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
