"""Messages of a queue: recorded before they are used, acknowledged after the commit, and each used once."""

import itertools
import threading
from pathlib import Path

import pytest
from pydantic import SecretStr

from apps.message_ingest.app import MessageIngest
from dagkit import OutputPort, Unavailable, Until
from dagkit.api.outage import present_outages
from dagkit.engine.program.points import Point
from dagkit.launching import Machine, launch
from dagkit.testing import Alone, Crash, CrashAfter
from dagkit_operators import Map, PartWriter, QueueInput, QueuePaths
from dagkit_operators.queues import consumer
from dagkit_operators.queues.consumer import QueueRefused
from dagkit_operators.queues.queue_input import AbstractQueueInput
from dagkit_operators.queues.queue_message import UnnamedMessages
from dagkit_operators.records.rejecting import ItemRejected
from tests.engine.cast import Collect, Desk, chain
from tests.operators.looking import at_outage, look_for_long, looks
from tests.operators.queues.ingests import check, files, lines_copied, lines_of
from tests.operators.ways import lines_in
from tests.patience import ended_within, within
from tests.services.rabbitmq import left, send

pytestmark = pytest.mark.slow  # a launch with an end waits for further messages

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


def run(application, conf=(), **options):
    options = {"until": "once", "durable": False, **options}
    conf = {"dt.operator.[Mm]essages.prop.quietMillis": 300, **dict(conf)}
    launch(application, conf, path="app", machine=Machine("reference"), **options)


def ingest(queue, **options):
    run(MessageIngest(url=SecretStr(MEMORY), queue=queue), **options)


def disconnect():
    """Close the connections that a crashed run left, as the end of its process would."""
    for each in list(consumer._open.values()):
        consumer.disconnect(each)


def crash(application, probe, conf=()):
    """Run into a crash; return whether it came."""
    try:
        run(application, conf, probe=probe)
    except Crash:
        return True
    finally:
        disconnect()
    return False


@pytest.mark.gate(4)
@pytest.mark.parametrize("point", Point)
@pytest.mark.parametrize("window", [1, 2])
def test_a_crash_at_any_step_loses_no_message_and_doubles_none(queue, point, window):
    send(MEMORY, queue, files(5))
    crash(MessageIngest(url=SecretStr(MEMORY), queue=queue), CrashAfter(point, window))
    ingest(queue)
    check(MEMORY, queue, 5)


def test_a_path_is_read_again_only_if_another_message_names_it(queue):
    paths = files(3)
    send(MEMORY, queue, paths)
    ingest(queue)
    send(MEMORY, queue, paths)  # the same IDs, as the broker delivers messages again whose acknowledgement it lost
    ingest(queue)
    check(MEMORY, queue, 3)
    for path in paths:
        send(MEMORY, queue, [path], message_id=f"another of {path}")
    ingest(queue)
    check(MEMORY, queue, 3, copies=2)


def test_equal_messages_without_an_id_are_different_messages(queue):
    send(MEMORY, queue, files(1) * 10, message_id=None)
    ingest(queue)
    assert lines_in("output") == sorted(lines_of(1) * 10)
    assert left(MEMORY, queue) == 0


def test_messages_without_a_file_become_dead_letters_and_hold_nothing_up(queue):
    send(MEMORY, queue, ["no\tpath", str(Path("gone").absolute()), "", *files(2)])
    ingest(queue)
    check(MEMORY, queue, 2)
    *no_paths, no_file = lines_in("dead-letters")
    assert [reason.partition(" (message")[0] for reason in no_paths] == ["the message is no path"] * 2
    assert no_file == f"there is no such file: {Path('gone').absolute()}"


def test_an_empty_file_is_acknowledged(queue):
    Path("empty").touch()
    send(MEMORY, queue, [str(Path("empty").absolute())])
    ingest(queue)
    assert left(MEMORY, queue) == 0


def test_a_file_of_many_blocks_is_acknowledged_once_all_are_read(queue):
    Path("long").write_text("".join(f"line {number}\n" for number in range(1000)))
    send(MEMORY, queue, [str(Path("long").absolute())])
    conf = {"dt.operator.Splitter.prop.blockSize": 100, "dt.operator.Splitter.prop.blocksThreshold": 7}
    application = MessageIngest(url=SecretStr(MEMORY), queue=queue)
    assert crash(application, CrashAfter(Point.APPENDED, 5), conf)
    assert left(MEMORY, queue) == 1
    run(application, conf)
    assert (len(lines_in("output")), left(MEMORY, queue)) == (1000, 0)


def test_messages_are_acknowledged_whatever_streaming_windows_are_in_an_application_window(queue):
    send(MEMORY, queue, files(3))
    run(lines_copied(MEMORY, queue), {"dt.operator.acknowledge.attr.APPLICATION_WINDOW_COUNT": 2})
    assert left(MEMORY, queue) == 0


def test_lines_that_are_acknowledged_and_not_visible_yet_survive_a_crash(queue):
    """One part stays open until the input is drained."""
    send(MEMORY, queue, files(3))
    draw = lines_copied(MEMORY, queue, visible_millis=0)
    assert crash(draw, CrashAfter(Point.FINISHED))
    assert (left(MEMORY, queue), lines_in("output")) == (0, [])
    run(draw, until="drained")
    check(MEMORY, queue, 3)


def copied(queue):
    messages, texts = QueueInput(queue=queue), Map(lambda message: message.text)
    return chain(Messages=messages, Texts=texts, Writer=PartWriter(file_path="output"))


@pytest.mark.gate(1)
@pytest.mark.parametrize("point", Point)
def test_messages_are_acknowledged_after_the_window_that_took_them(queue, point):
    send(MEMORY, queue, ["one", "two", "three"])
    crash(copied(queue), CrashAfter(point))
    is_committed = point not in (Point.PLANNED, Point.RUNNING, Point.STAGED)
    assert left(MEMORY, queue) in ((0, 3) if is_committed else (3,))
    run(copied(queue))
    assert (lines_in("output"), left(MEMORY, queue)) == (["one", "three", "two"], 0)


def test_a_queue_that_does_not_exist_is_refused(queue):
    alone = Alone(QueueInput(queue=queue))
    with pytest.raises(QueueRefused, match=queue):
        look_for_long(alone)
    alone.operator.teardown()


@pytest.mark.gate(1)
@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE, Until.STOPPED])
def test_a_launch_is_stopped_while_the_broker_is_away(tmp_path, queue, until):
    source = QueueInput(url=SecretStr("amqp://guest:guest@127.0.0.1:1//"), queue=queue)
    loop, waiting = Desk(tmp_path, chain(Messages=source, Collect=Collect()), until=until).loop(), []

    def stop():
        loop.stop()
        waiting.extend(present_outages())

    with at_outage(stop):
        loop.run()
    assert loop.checkpoint.window == 0
    assert any(
        f"the broker of the queue {queue} at 127.0.0.1:1 has not answered for " in sentence for sentence in waiting
    )
    assert not any(queue in sentence for sentence in present_outages())


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("amqp://guest:guest@etl-1:5672//", " at etl-1:5672"),
        ("amqp://etl-1//", " at etl-1"),
        ("memory://", ""),
        ("amqp://guest:p/w@etl-1//", ""),
        ("amqp://guest:p@s/w@etl-1//", ""),
    ],
)
def test_the_host_of_a_broker_is_named_unless_it_may_be_part_of_a_password(url, host):
    assert consumer.at_host(url) == host


@pytest.mark.parametrize("quiet_millis", [1, 300])
def test_a_launch_with_an_end_takes_messages_until_there_are_none(queue, quiet_millis):
    """However short the time without a message is: the broker is asked, and sends others after each commit."""
    send(MEMORY, queue, map(str, range(35)))
    conf = {"dt.operator.Messages.prop.mostUnacknowledged": 10, "dt.operator.Messages.prop.quietMillis": quiet_millis}
    run(copied(queue), conf)
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
    while len(consumer._received) < 3:
        consumer._arrived.wait(within(30))
    with pytest.raises(ItemRejected, match="the message is no path"):
        alone.look()
    alone.operator.teardown()
    assert left(MEMORY, queue) == 3


class Asking(AbstractQueueInput[str]):
    """Asks a server for each item; the server does not answer once."""

    kind = "tests.asking/1"
    output = OutputPort(str, main=True)

    def convert(self, message):
        if message.text == "2" and not Path("asked").exists():
            Path("asked").touch()
            raise Unavailable("the server is away")
        return message.text


@pytest.mark.parametrize("named", [{}, {"message_id": None}], ids=["with an ID", "without an ID"])
def test_a_look_that_is_undone_loses_no_message_and_doubles_none(queue, named):
    send(MEMORY, queue, ["1", "2", "3"], **named)
    run(chain(messages=Asking(queue=queue), write=PartWriter("output")))
    assert (lines_in("output"), left(MEMORY, queue)) == (["1", "2", "3"], 0)


def test_only_the_last_messages_are_remembered(queue):
    send(MEMORY, queue, map(str, range(35)))
    alone = Alone(QueueInput(queue=queue, remembered=10))
    found = []
    for _ in looks(alone):
        found += [message.text for message in alone.sent("output")]
        assert len(alone.state["known"]) <= 2 * 16 * 10
        if len(found) == 35:
            break
    assert found == list(map(str, range(35)))
    alone.operator.teardown()


def nowhere(name):
    return False


def test_a_new_message_is_distinguished_from_equal_ones():
    messages = UnnamedMessages()
    assert [messages.add("a").id, messages.add("b").id, messages.add("a").id] == ["a-0", "b-1", "a-2"]


def test_each_taken_message_is_recognised_until_the_broker_has_removed_it():
    messages = UnnamedMessages()
    first, second = messages.add("a"), messages.add("a")
    assert messages.find("a", nowhere) == first
    assert messages.find("a", {first.id}.__contains__) == second, "the first one is delivered already"
    messages.remove(first)
    assert messages.find("a", nowhere) == second
    messages.remove(second)
    assert messages.find("a", nowhere) is None
    assert messages.taken == {}


def test_the_end_of_a_launch_does_not_wait_for_a_broker_that_does_not_answer(monkeypatch):
    answers = threading.Event()
    monkeypatch.setattr(consumer, "_ENDS_WITHIN_SECONDS", 0.1)
    monkeypatch.setattr(consumer.Consumer, "_run", lambda _: answers.wait(within(60)))
    silent = consumer.Consumer(MEMORY, "orders", 10, {}, commits_acknowledge=True)
    try:
        with ended_within(within(10)):
            silent.close()
    finally:
        answers.set()
