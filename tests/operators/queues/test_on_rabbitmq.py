"""Message ingest on a real RabbitMQ: drivers and brokers that are killed, and what the broker refuses."""

import contextlib
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Self

import pytest
from pydantic import SecretStr

from apps.message_ingest.app import MessageIngest
from dagkit import Dag
from dagkit.errors import RunFailure
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.testing import Alone
from dagkit_operators import (
    AcknowledgeFiles,
    FileSplitterBase,
    LineReader,
    Map,
    PartWriter,
    QueueInput,
    QueuePaths,
    RecordWriter,
)
from dagkit_operators.queues.consumer import QueueRefused
from tests.operators.looking import look_for_long, looks
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

    def __init__(self, broker: RabbitMQ, queue: str, until: str, backend: str = "reference") -> None:
        command = [sys.executable, "-m", "tests.operators.queues.driver", broker.url, queue, until, backend]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def steps(self) -> Iterator[str]:
        """The steps of windows, as they are reached."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield line.strip()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.communicate(timeout=within(600))

    def end(self) -> int:
        """Wait for its end."""
        self._process.communicate(timeout=within(600))
        return self._process.returncode


def files(first: int, count: int) -> list[str]:
    paths = [Path(f"file-{number}") for number in range(first, first + count)]
    for path in paths:
        path.write_text("".join(f"{path.name}, line {line}\n" for line in range(5)))
    return [str(path.absolute()) for path in paths]


def check(broker: RabbitMQ, queue: str, count: int, copies: int = 1) -> None:
    """Each line of each file is there once for each message, no message is left, and the ledger proves it."""
    lines = sorted(line for path in Path("output").iterdir() for line in path.read_text().splitlines())
    expected = [f"file-{number}, line {line}" for number in range(count) for line in range(5)]
    assert lines == sorted(expected * copies)
    assert broker.left(queue) == 0
    assert verify(Ledger.open("app")).is_valid


def killed(broker: RabbitMQ, queue: str, kills: Sequence[int], backend: str) -> int:
    """Kill a driver after so many steps, again and again, while files arrive; return how many files there are."""
    count = 0
    for steps in kills:
        broker.send(queue, files(count, 3))
        count += 3
        driver = Driver(broker, queue, "stopped", backend)
        for _ in zip(range(steps), driver.steps(), strict=False):
            pass
        driver.kill()
    assert Driver(broker, queue, "once", backend).end() == 0
    return count


@pytest.mark.trial
@pytest.mark.parametrize("backend", ["reference", pytest.param("spark", marks=pytest.mark.spark)])
def test_drivers_that_are_killed_lose_no_message_and_double_none(broker, backend, trials):
    queue = f"kills-on-{backend}"
    random = Random(SEED)  # noqa: S311 - drawn for a test
    kills = trials if backend == "reference" else -(-trials // 10)
    count = killed(broker, queue, [random.randint(1, 6) for _ in range(kills)], backend)
    check(broker, queue, count)


def test_equal_messages_without_an_id_are_all_read_wherever_a_run_stops(broker):
    """The broker holds more messages than it delivers at once, and marks those that a run leaves as redelivered."""
    queue, (path,) = "unnamed", files(0, 1)
    broker.send(queue, [path] * 60, message_id=None)
    conf = {"dt.operator.Messages.prop.mostUnacknowledged": 20}
    while broker.left(queue):
        application = MessageIngest(url=SecretStr(broker.url), queue=queue)
        launch(application, conf, path="app", until="once", windows=2, machine=Machine(backend="reference"))
    check(broker, queue, 1, copies=60)


def test_different_messages_without_an_id_survive_kills(broker, trials):
    queue, count = "unnamed-and-killed", 0
    for steps in range(1, trials + 1):
        broker.send(queue, files(count, 3), message_id=None)
        count += 3
        driver = Driver(broker, queue, "stopped")
        for _ in zip(range(steps), driver.steps(), strict=False):
            pass
        driver.kill()
    assert Driver(broker, queue, "once").end() == 0
    check(broker, queue, count)


@pytest.mark.trial
def test_brokers_that_are_killed_lose_no_message_and_double_none(tmp_path, trials):
    with RabbitMQ(tmp_path / "broker") as broker:
        broker.send("files", files(0, 3))
        count = 3
        with Driver(broker, "files", "stopped") as driver:
            steps = driver.steps()
            for _ in range(trials):
                finished = next(step for step in steps if step.startswith("finished"))
                assert finished
                broker.kill()
                broker.start()
                broker.send("files", files(count, 3))
                count += 3
            next(step for step in steps if step.startswith("finished"))
        assert Driver(broker, "files", "once").end() == 0
        check(broker, "files", count)


def ingest(broker: RabbitMQ, queue: str, *, takes_rejected: bool) -> None:
    """Launch an application that copies the lines of the files that messages name, and fails if a file is missing."""

    def draw(dag: Dag, conf: object) -> None:
        url = SecretStr(broker.url)
        messages = dag.add_operator("messages", QueuePaths(url=url, queue=queue))
        splitter = dag.add_operator("splitter", FileSplitterBase())
        acknowledge = dag.add_operator("acknowledge", AcknowledgeFiles(url=url, queue=queue))
        reader = dag.add_operator("reader", LineReader())
        dag.add_stream("paths", messages.output, splitter.input, acknowledge.files)
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("files", splitter.files_metadata_output, acknowledge.metadata)
        dag.add_stream("read", reader.blocks_metadata_output, acknowledge.blocks)
        dag.add_stream("settled", messages.settled, acknowledge.settled)
        dag.add_stream("lines", reader.messages, dag.add_operator("lines", RecordWriter(file_path="output")).input)
        if takes_rejected:
            texts = dag.add_operator("texts", Map(lambda rejected: f"{rejected.reason}: {rejected.text}"))
            dag.add_stream("rejected", messages.rejected, texts.input)
            texts >> dag.add_operator("letters", PartWriter(file_path="letters"))

    launch(draw, until="once", path="app", machine=Machine("reference"))


def test_messages_that_name_no_file_are_reported_with_their_ids_and_stay(broker):
    missing = Path("file-0").absolute()
    broker.send("without-files", ["no\tpath", str(missing)])
    with pytest.raises(RunFailure, match=r"the message is no path \(message without-files-0-no\tpath") as rejected:
        ingest(broker, "without-files", takes_rejected=False)
    assert "of the queue without-files" in rejected.value.problem
    assert rejected.value.code == "item-rejected"
    assert broker.left("without-files") == 2
    with pytest.raises(RunFailure, match=f"cannot read {missing}: there is no such file") as unreadable:
        ingest(broker, "without-files", takes_rejected=True)
    assert unreadable.value.code == "input-unreadable"
    assert files(0, 1) == [str(missing)]
    ingest(broker, "without-files", takes_rejected=True)
    check(broker, "without-files", 1)
    (letter,) = Path("letters").iterdir()
    assert (
        letter.read_text()
        == "the message is no path (message without-files-0-no\tpath of the queue without-files): no\tpath\n"
    )


@pytest.mark.parametrize(
    ("change", "queue", "problem"),
    [
        (("guest:guest", "guest:wrong"), "files", "ACCESS_REFUSED"),
        (("guest:guest", "guest:guest"), "absent", "no queue 'absent'"),
        (("5672//", "5672//"), "absent", "no queue 'absent'"),
        (("guest:guest", "guest:wrong/word"), "files", "the URL of the queue files is not valid"),
        (("guest:guest", "guest:wrong#word"), "files", "the URL of the queue files is not valid"),
        (("amqp:", "rabbit:"), "files", "the URL of the queue files is not valid"),
    ],
    ids=["password", "queue", "queue again", "a slash in the URL", "a number sign in the URL", "transport"],
)
def test_what_the_broker_refuses_ends_the_run_and_no_secret_is_shown(broker, change, queue, problem):
    alone = Alone(QueueInput(url=SecretStr(broker.url.replace(*change)), queue=queue))
    with pytest.raises(QueueRefused, match=problem) as refused:
        look_for_long(alone)
    assert "wrong" not in "".join(traceback.format_exception(refused.value))
    alone.operator.teardown()


def over_tls(broker: RabbitMQ, authority: str) -> Alone[QueueInput]:
    trusted = {"ssl": {"ca_certs": str(broker.folder / authority)}}
    return Alone(QueueInput(url=SecretStr(broker.tls_url), queue="over-tls", transport_options=trusted))


def test_messages_arrive_over_tls(broker):
    broker.send("over-tls", ["one"])
    alone = over_tls(broker, "trusted.pem")
    messages = next(sent for _ in looks(alone) if (sent := alone.sent("output")))
    assert [message.text for message in messages] == ["one"]
    alone.operator.teardown()


def test_a_certificate_of_an_authority_that_is_not_trusted_ends_the_run(broker):
    alone = over_tls(broker, "other.pem")
    with pytest.raises(QueueRefused, match="certificate verify failed"):
        look_for_long(alone)
    alone.operator.teardown()


@pytest.mark.trial
def test_a_broker_that_is_away_is_reported_once_and_waited_for(tmp_path, caplog):
    with RabbitMQ(tmp_path / "broker") as broker:
        broker.send("files", ["one"])
        broker.shut_down()  # a killed one may forget the new queue
        caplog.set_level(logging.WARNING)
        alone = Alone(QueueInput(url=SecretStr(broker.url), queue="files"))
        next(None for _ in looks(alone) if caplog.records)
        broker.start()
        messages = next(sent for _ in looks(alone) if (sent := alone.sent("output")))
        assert [message.text for message in messages] == ["one"]
        texts = [record.getMessage() for record in caplog.records if record.name.startswith("dagkit")]
        assert len(texts) == 2
        assert "does not answer" in texts[0]
        assert "answers again" in texts[1]
        alone.operator.teardown()
