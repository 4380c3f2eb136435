"""Messages of a queue: recorded before they are used, acknowledged after the commit, and each used once."""

import contextlib
import itertools
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from apps.message_ingest.app import MessageIngest
from dagkit import Config, Dag, Until
from dagkit.api.outage import present_outages
from dagkit.engine.points import Point
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.testing import Alone, Crash, CrashAfter
from dagkit_operators import (
    AcknowledgeFiles,
    FileSplitterBase,
    LineReader,
    Map,
    PartWriter,
    QueueInput,
    QueuePaths,
)
from dagkit_operators.queues import consumers
from dagkit_operators.queues.consumer import QueueRefused
from dagkit_operators.records.rejecting import ItemRejected
from tests.engine.cast import Collect, Desk
from tests.operators.looking import look_for_long, looks
from tests.operators.outages import at_outage
from tests.patience import within
from tests.services.rabbitmq import left, send

pytestmark = pytest.mark.slow  # a launch with an end waits a second for further messages

MEMORY = "memory://"
_numbers = itertools.count()


@pytest.fixture
def queue():
    """The name of a queue that no other test uses."""
    return f"queue-{next(_numbers)}"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ingest(queue: str, *, url: str = MEMORY, **options: Any) -> None:
    application = MessageIngest(url=SecretStr(url), queue=queue)
    options = {"until": "once", "durable": False, **options}
    launch(application, {}, path="app", machine=Machine(backend="reference"), **options)


def files(count: int) -> list[str]:
    """Paths of files with three lines each."""
    paths = [Path(f"file-{number}") for number in range(count)]
    for path in paths:
        path.write_text("".join(f"{path.name}, line {line}\n" for line in range(3)))
    return [str(path.absolute()) for path in paths]


def disconnect() -> None:
    """Close the connections that a crashed run left, as the end of its process would."""
    for consumer in list(consumers._open.values()):
        consumers.closed(consumer)


def lines_in(folder: str) -> list[str]:
    return sorted(line for path in Path(folder).rglob("*") if path.is_file() for line in path.read_text().splitlines())


def expected(count: int) -> list[str]:
    return sorted(f"file-{number}, line {line}" for number in range(count) for line in range(3))


def proven() -> bool:
    return verify(Ledger.open("app")).is_valid


def test_the_files_that_messages_name_are_read_and_the_messages_are_acknowledged(queue):
    send(MEMORY, queue, files(5))
    ingest(queue)
    assert lines_in("output") == expected(5)
    assert left(MEMORY, queue) == 0
    assert proven()


@pytest.mark.gate(4)
@pytest.mark.parametrize("point", Point)
@pytest.mark.parametrize("window", [1, 2])
def test_a_crash_at_any_step_loses_no_message_and_doubles_none(queue, point, window):
    send(MEMORY, queue, files(5))
    with contextlib.suppress(Crash):
        ingest(queue, probe=CrashAfter(point, window))
    disconnect()
    ingest(queue)
    assert lines_in("output") == expected(5)
    assert left(MEMORY, queue) == 0
    assert proven()


def test_a_message_whose_acknowledgement_was_lost_is_acknowledged_again_and_not_read_again(queue):
    paths = files(3)
    send(MEMORY, queue, paths)
    ingest(queue)
    send(MEMORY, queue, paths)  # the same IDs, as the broker delivers messages again
    ingest(queue)
    assert lines_in("output") == expected(3)
    assert left(MEMORY, queue) == 0


def test_a_path_that_is_sent_again_in_another_message_is_read_again(queue):
    (path,) = files(1)
    send(MEMORY, queue, [path])
    ingest(queue)
    send(MEMORY, queue, [path], message_id="another")
    ingest(queue)
    assert lines_in("output") == sorted(expected(1) * 2)


def test_equal_messages_without_an_id_are_different_messages(queue):
    send(MEMORY, queue, files(1) * 10, message_id=None)
    ingest(queue)
    assert lines_in("output") == sorted(expected(1) * 10)
    assert left(MEMORY, queue) == 0


def test_messages_without_a_file_become_dead_letters_and_hold_nothing_up(queue):
    send(MEMORY, queue, ["no\tpath", str(Path("gone").absolute()), "", *files(2)])
    ingest(queue)
    assert lines_in("output") == expected(2)
    reasons = lines_in("dead-letters")
    assert reasons[0].startswith("the message is no path (message")
    assert reasons[1].startswith("the message is no path (message")
    assert reasons[2] == f"there is no such file: {Path('gone').absolute()}"
    assert left(MEMORY, queue) == 0


def test_an_empty_file_is_acknowledged(queue):
    Path("empty").touch()
    send(MEMORY, queue, [str(Path("empty").absolute())])
    ingest(queue)
    assert left(MEMORY, queue) == 0


def test_a_file_of_many_blocks_is_acknowledged_once_all_are_read(queue):
    Path("long").write_text("".join(f"line {number}\n" for number in range(1000)))
    send(MEMORY, queue, [str(Path("long").absolute())])
    application = MessageIngest(url=SecretStr(MEMORY), queue=queue)
    conf = {"dt.operator.Splitter.prop.blockSize": 100, "dt.operator.Splitter.prop.blocksThreshold": 7}
    options: dict[str, Any] = {"path": "app", "until": "once", "machine": Machine(backend="reference")}
    with pytest.raises(Crash):
        launch(application, conf, probe=CrashAfter(Point.APPENDED, 5), **options)
    disconnect()
    assert left(MEMORY, queue) == 1
    launch(application, conf, **options)
    assert len(lines_in("output")) == 1000
    assert left(MEMORY, queue) == 0


class InOneFile(MessageIngest):
    """Adds the lines of all files to one file, which stays open until the input is drained."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        messages = dag.add_operator("Messages", QueuePaths(queue=self.queue))
        splitter = dag.add_operator("Splitter", FileSplitterBase())
        reader = dag.add_operator("Block-reader", LineReader())
        writer = dag.add_operator("Lines", PartWriter(file_path=self.target, visible_millis=0))
        acknowledge = dag.add_operator("Acknowledge", AcknowledgeFiles(queue=self.queue))
        dag.add_stream("paths", messages.output, splitter.input, acknowledge.files)
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, writer.input)
        dag.add_stream("files", splitter.files_metadata_output, acknowledge.metadata)
        dag.add_stream("read", reader.blocks_metadata_output, acknowledge.blocks)
        dag.add_stream("settled", messages.settled, acknowledge.settled)


def test_lines_that_are_acknowledged_and_not_visible_yet_survive_a_crash(queue):
    options: dict[str, Any] = {"path": "app", "machine": Machine(backend="reference")}
    send(MEMORY, queue, files(3))
    with pytest.raises(Crash):
        launch(InOneFile(queue=queue), {}, until="once", probe=CrashAfter(Point.FINISHED), **options)
    disconnect()
    assert left(MEMORY, queue) == 0
    assert lines_in("output") == []
    launch(InOneFile(queue=queue), {}, until="drained", **options)
    assert lines_in("output") == expected(3)
    assert proven()


def copied(queue: str, *, rejected: bool = False) -> Any:
    def populate_dag(dag: Dag, conf: Config) -> None:
        messages = dag.add_operator("Messages", QueueInput(queue=queue))
        texts = dag.add_operator("Texts", Map(lambda message: message.text))
        writer = dag.add_operator("Writer", PartWriter(file_path="output"))
        dag.add_stream("messages", messages.output, texts.input)
        dag.add_stream("texts", texts.output, writer.input)
        if rejected:
            refused = dag.add_operator("Refused", Map(lambda item: item.text))
            dag.add_stream("rejected", messages.rejected, refused.input)

    return populate_dag


@pytest.mark.gate(1)
@pytest.mark.parametrize("point", Point)
def test_messages_are_acknowledged_after_the_window_that_took_them(queue, point):
    send(MEMORY, queue, ["one", "two", "three"])
    options: dict[str, Any] = {"path": "app", "until": "once", "machine": Machine(backend="reference")}
    with contextlib.suppress(Crash):
        launch(copied(queue), {}, probe=CrashAfter(point), **options)
    disconnect()
    is_committed = point not in (Point.PLANNED, Point.RUNNING, Point.STAGED)
    assert left(MEMORY, queue) in ((0, 3) if is_committed else (3,))
    launch(copied(queue), {}, **options)
    assert lines_in("output") == ["one", "three", "two"]
    assert left(MEMORY, queue) == 0


def test_a_queue_that_does_not_exist_is_refused(queue):
    alone = Alone(QueueInput(queue=queue))
    with pytest.raises(QueueRefused, match=queue):
        look_for_long(alone)
    alone.operator.teardown()


@pytest.mark.gate(1)
@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE, Until.STOPPED])
def test_a_launch_is_stopped_while_the_broker_is_away(tmp_path, queue, until):
    def draw(dag: Dag, conf: Config) -> None:
        source = QueueInput(url=SecretStr("amqp://guest:guest@127.0.0.1:1//"), queue=queue)
        dag.add_operator("Messages", source) >> dag.add_operator("Collect", Collect())

    loop = Desk(tmp_path, draw, until=until).loop()
    waiting: list[str] = []

    def stop() -> None:
        loop.stop()
        waiting.extend(present_outages())

    with at_outage(stop):
        loop.run()
    assert loop.checkpoint.window == 0
    assert any(f"the broker of the queue {queue} has not answered for " in sentence for sentence in waiting)
    assert not any(queue in sentence for sentence in present_outages())


def test_a_launch_with_an_end_takes_messages_until_none_has_come_for_a_while(queue):
    send(MEMORY, queue, map(str, range(35)))
    options: dict[str, Any] = {"path": "app", "until": "once", "machine": Machine(backend="reference")}
    settings = {"mostUnacknowledged": 10, "quietMillis": 300}
    launch(copied(queue), {f"dt.operator.Messages.prop.{name}": value for name, value in settings.items()}, **options)
    assert lines_in("output") == sorted(map(str, range(35)))


def test_a_rejected_message_that_no_output_takes_fails_the_run_and_stays(queue):
    send(MEMORY, queue, ["no\tpath"])
    alone = Alone(QueuePaths(queue=queue), connected=["output"])
    with pytest.raises(ItemRejected, match="the message is no path"):
        look_for_long(alone)
    alone.operator.teardown()
    assert left(MEMORY, queue) == 1


def test_a_look_that_fails_acknowledges_no_message_that_it_received_twice(queue):
    send(MEMORY, queue, ["a path", "a path"], message_id="twice")
    send(MEMORY, queue, ["no\tpath"])
    alone = Alone(QueuePaths(queue=queue), connected=["output"])
    consumer = alone.operator._consumer
    assert consumer is not None
    while len(consumer._received) < 3:
        consumer._arrived.wait(within(30))
    with pytest.raises(ItemRejected, match="the message is no path"):
        alone.look()
    alone.operator.teardown()
    assert left(MEMORY, queue) == 3


def test_only_the_last_messages_are_remembered(queue):
    send(MEMORY, queue, map(str, range(35)))
    alone = Alone(QueueInput(queue=queue, remembered=10))
    found: list[str] = []
    for _ in looks(alone):
        found += [message.text for message in alone.sent("output")]
        assert len(alone.state["known"]) <= 2 * 16 * 10
        if len(found) == 35:
            break
    assert found == list(map(str, range(35)))
    alone.operator.teardown()
