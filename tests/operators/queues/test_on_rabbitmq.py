"""Message ingest on a real RabbitMQ: drivers and brokers that are killed, and what the broker refuses."""

import contextlib
import logging
import os
import subprocess
import sys
import traceback
from pathlib import Path
from random import Random

import pytest
from pydantic import SecretStr

from apps.message_ingest.app import MessageIngest
from dagkit.launching import Machine, launch
from dagkit.testing import Alone
from dagkit_operators import QueueInput
from dagkit_operators.queues.consumer import QueueRefused
from tests.cases import cases
from tests.operators.looking import look_for_long, looks
from tests.operators.queues.ingests import check, files
from tests.patience import within
from tests.services.certificates import Authority
from tests.services.rabbitmq import RabbitMQ

pytestmark = pytest.mark.trial
ROOT = Path(__file__).parents[3]
SEED = 20261123


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker that runs for all tests of this file, with a certificate, and beside it that of its authority."""
    folder, authority = tmp_path_factory.mktemp("rabbitmq"), Authority()
    authority.write(folder / "trusted.pem")
    authority.issue(folder / "server.pem")
    Authority().write(folder / "other.pem")
    with RabbitMQ(folder) as running:
        yield running


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Driver:
    """A process that ingests, and can be killed."""

    def __init__(self, broker, queue, until, backend="reference"):
        command = [sys.executable, "-m", "tests.operators.queues.driver", broker.url, queue, until, backend]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def steps(self):
        """The steps of windows, as they are reached."""
        for line in self._process.stdout:
            yield line.strip()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.communicate(timeout=within(600))

    def end(self):
        """Wait for its end."""
        self._process.communicate(timeout=within(600))
        return self._process.returncode


def killed(broker, queue, kills, backend, **properties):
    """Kill a driver after so many steps, again and again, while files arrive; return how many files there are."""
    count = 0
    for steps in kills:
        broker.send(queue, files(3, count), **properties)
        count += 3
        driver = Driver(broker, queue, "stopped", backend)
        for _ in zip(range(steps), driver.steps(), strict=False):
            pass
        driver.kill()
    assert Driver(broker, queue, "once", backend).end() == 0
    return count


@pytest.mark.parametrize("backend", ["reference", pytest.param("spark", marks=pytest.mark.spark)])
def test_drivers_that_are_killed_lose_no_message_and_double_none(broker, backend, trials):
    queue = f"kills-on-{backend}"
    random = Random(SEED)  # noqa: S311 - drawn for a test
    kills = trials if backend == "reference" else -(-trials // 10)
    count = killed(broker, queue, [random.randint(1, 6) for _ in range(kills)], backend)
    check(broker.url, queue, count)


def test_equal_messages_without_an_id_are_all_read_wherever_a_run_stops(broker):
    """The broker holds more messages than it delivers at once, and marks those that a run leaves as redelivered."""
    queue, (path,) = "unnamed", files(1)
    broker.send(queue, [path] * 60, message_id=None)
    conf = {"dt.operator.Messages.prop.mostUnacknowledged": 20}
    while broker.left(queue):
        application = MessageIngest(url=SecretStr(broker.url), queue=queue)
        launch(application, conf, path="app", until="once", windows=2, machine=Machine(backend="reference"))
    check(broker.url, queue, 1, copies=60)


def test_different_messages_without_an_id_survive_kills(broker, trials):
    queue = "unnamed-kills"
    check(broker.url, queue, killed(broker, queue, range(1, trials + 1), "reference", message_id=None))


def test_brokers_that_are_killed_lose_no_message_and_double_none(tmp_path, trials):
    with RabbitMQ(tmp_path / "broker") as broker:
        broker.send("files", files(3))
        count = 3
        with Driver(broker, "files", "stopped") as driver:
            steps = driver.steps()
            for _ in range(trials):
                next(step for step in steps if step.startswith("finished"))
                broker.kill()
                broker.start()
                broker.send("files", files(3, count))
                count += 3
            next(step for step in steps if step.startswith("finished"))
        assert Driver(broker, "files", "once").end() == 0
        check(broker.url, "files", count)


INVALID = "the URL of the queue files is not valid"


@cases(
    "change, queue, problem",
    ("password", ("guest:guest", "guest:wrong"), "files", "ACCESS_REFUSED"),
    ("queue", ("guest:guest", "guest:guest"), "absent", "no queue 'absent'"),
    ("a slash in the URL", ("guest:guest", "guest:wrong/word"), "files", INVALID),
    ("a number sign in the URL", ("guest:guest", "guest:wrong#word"), "files", INVALID),
    ("transport", ("amqp:", "rabbit:"), "files", INVALID),
)
def test_what_the_broker_refuses_ends_the_run_and_no_secret_is_shown(broker, change, queue, problem):
    alone = Alone(QueueInput(url=SecretStr(broker.url.replace(*change)), queue=queue))
    with pytest.raises(QueueRefused, match=problem) as refused:
        look_for_long(alone)
    assert "wrong" not in "".join(traceback.format_exception(refused.value))
    alone.operator.teardown()


def over_tls(broker, authority):
    trusted = {"ssl": {"ca_certs": str(broker.folder / authority)}}
    return Alone(QueueInput(url=SecretStr(broker.tls_url), queue="over-tls", transport_options=trusted))


def test_messages_arrive_over_tls_if_the_authority_of_the_certificate_is_trusted(broker):
    broker.send("over-tls", ["one"])
    alone = over_tls(broker, "trusted.pem")
    assert next_texts(alone) == ["one"]
    alone.operator.teardown()
    other = over_tls(broker, "other.pem")
    with pytest.raises(QueueRefused, match="certificate verify failed"):
        look_for_long(other)
    other.operator.teardown()


def next_texts(alone):
    messages = next(sent for _ in looks(alone) if (sent := alone.sent("output")))
    return [message.text for message in messages]


def test_a_broker_that_is_away_is_reported_once_and_waited_for(tmp_path, caplog):
    with RabbitMQ(tmp_path / "broker") as broker:
        broker.send("files", ["one"])
        broker.shut_down()  # a killed one may forget the new queue
        caplog.set_level(logging.WARNING)
        alone = Alone(QueueInput(url=SecretStr(broker.url), queue="files"))
        next(None for _ in looks(alone) if caplog.records)
        broker.start()
        assert next_texts(alone) == ["one"]
        first, second = [record.getMessage() for record in caplog.records if record.name.startswith("dagkit")]
        assert "does not answer" in first
        assert "answers again" in second
        alone.operator.teardown()
