"""From topic to topic and to files: each message once, whatever is killed, and whenever."""

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dagkit.engine.points import Point
from dagkit.errors import RunFailure
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.testing.crashes import Crash, CrashAfter
from tests.operators.kafka.copying import Copy, written_to
from tests.services.broker import Broker, running

pytestmark = pytest.mark.slow

SEED = 20261123
backends = pytest.mark.parametrize(
    ("backend", "trials"), [("reference", 50), pytest.param("spark", 6, marks=pytest.mark.spark)]
)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that tests may kill."""
    with running(tmp_path_factory.mktemp("own")) as broker:
        yield broker


class Trials:
    """Messages that are copied while something is killed."""

    def __init__(self, broker: Broker, home: Path, *, endless: bool = False) -> None:
        self.broker, self.home, self.endless = broker, home, endless
        self.source, self.target = broker.topic(3), broker.topic(2)
        self.sent = 0
        self.random = random.Random(SEED)  # noqa: S311 - it chooses what is killed

    def produce(self) -> None:
        """Send some messages to each partition."""
        for partition in range(3):
            count = self.random.randint(1, 9)
            self.broker.produce(self.source, range(self.sent, self.sent + count), partition)
            self.sent += count

    @property
    def application(self) -> Copy:
        out = str(self.home / "out")
        return Copy(address=self.broker.address, source=self.source, target=self.target, out=out, endless=self.endless)

    def begin(self) -> subprocess.Popen[str]:
        """Launch the application in a process of its own. It prints each step."""
        given = [self.home, self.broker.address, self.source, self.target, "endless" if self.endless else "ranges"]
        command = [sys.executable, "-m", "tests.operators.kafka.copying", *map(str, given)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603

    def check(self) -> None:
        """Every message is in the topic and in the files once."""
        expected = list(range(self.sent))
        copied = sorted(int(value) for values in self.broker.committed(self.target, 2) for value in values)
        assert copied == expected
        assert written_to(self.home / "out") == expected
        assert self.endless or verify(Ledger.open(str(self.home / "app"))).is_complete


@backends
@pytest.mark.parametrize("endless", [False, True], ids=["ranges", "without an end"])
def test_a_driver_that_crashes_again_and_again(
    tmp_path: Path, backend: str, trials: int, endless: bool, request: pytest.FixtureRequest
) -> None:
    kafka = request.getfixturevalue("kafka")
    session = request.getfixturevalue("spark") if backend == "spark" else None
    machine, trial = Machine(backend=backend, spark=session), Trials(kafka, tmp_path, endless=endless)
    crashed = 0
    for _ in range(trials):
        trial.produce()
        probe = CrashAfter(trial.random.choice([point for point in Point if point is not Point.HALF_FINISHED]))
        try:
            launch(trial.application, until="idle", machine=machine, path=tmp_path / "app", probe=probe)
        except Crash:
            crashed += 1
    launch(trial.application, until="idle", machine=machine, path=tmp_path / "app")
    assert crashed >= trials * 0.8
    trial.check()


@pytest.mark.spark
def test_workers_of_spark_that_are_killed_at_any_message(kafka: Broker, spark: Any, tmp_path: Path) -> None:
    trial, machine = Trials(kafka, tmp_path), Machine(backend="spark", spark=spark)
    killed = []
    for number in range(5):
        before = trial.sent
        trial.produce()
        deadly, mark = trial.random.randrange(before, trial.sent), str(tmp_path / f"killed-{number}")
        application = trial.application.model_copy(update={"deadly": deadly, "killed": mark})
        try:
            launch(application, until="idle", machine=machine, path=tmp_path / "app")
        except RunFailure as failure:
            killed.append(failure.code)
    launch(trial.application, until="idle", machine=machine, path=tmp_path / "app")
    assert len(list(tmp_path.glob("killed-*"))) == 5
    assert set(killed) <= {"worker-failed", "spark-failed"}
    trial.check()


def test_a_driver_that_is_killed_at_any_step(own: Broker, tmp_path: Path) -> None:
    trial = Trials(own, tmp_path)
    for _ in range(6):
        trial.produce()
        after = trial.random.randint(1, 7)
        with trial.begin() as process:
            assert process.stdout is not None
            for step, line in enumerate(process.stdout, start=1):
                if step == after or line == "done\n":
                    break
            process.kill()
    with trial.begin() as process:
        printed, problem = process.communicate()
        assert printed.endswith("done\n"), problem
    trial.check()


def test_a_broker_that_is_killed_at_any_step_is_waited_for(own: Broker, tmp_path: Path) -> None:
    trial = Trials(own, tmp_path)
    for _ in range(5):
        trial.produce()
        after = trial.random.randint(1, 5)
        with trial.begin() as process:
            assert process.stdout is not None
            lines: list[str] = []
            for line in process.stdout:
                lines.append(line)
                if len(lines) == after:
                    own.kill()
                    own.start()
            assert lines[-1:] == ["done\n"], process.stderr and process.stderr.read()
    trial.check()
