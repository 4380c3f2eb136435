"""Messages reach a topic of a real broker once, in one transaction for each window, also those that waited for long."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pytest

from dagkit import OperatorContext
from dagkit.engine.program.points import Point
from dagkit.errors import RunFailure
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import Items, KafkaReader, KafkaSplitter, KafkaWriter, Map
from dagkit_operators.kafka.client import confluent
from dagkit_operators.kafka.messages import OpenEntry, Outgoing, columns_in, columns_of, messages_in
from dagkit_operators.kafka.topics import Partition, Topics, Unanswered
from dagkit_operators.kafka.transactions import TransactionalTopic, last_window
from tests.engine.cast import Collect, Desk, Digits, Hurried, Ranges, arrived, chain
from tests.operators.kafka.topics_cast import login
from tests.operators.ways import after_windows, placed, refused, when
from tests.services.broker import QUIET, done
from tests.services.losing_proxy import LosingCommits

pytestmark = pytest.mark.slow

LOOKS = ((10, 10), (5,), (20,), (3, 4))
EXPECTED = list(range(52))


def written(broker, topic, **properties):
    """An application that writes numbers to a topic, which two partitions stage."""
    writer = KafkaWriter(topic=topic, **{"bootstrap_servers": broker.address, "value": str, **properties})
    return chain(ranges=Ranges(looks=LOOKS), digits=(Digits(), 2), writer=writer)


def numbers(broker, topic, partitions=1):
    return sorted(int(value) for values in broker.committed(topic, partitions) for value in values)


def test_the_messages_of_a_window_are_written_once_and_numbered(kafka, tmp_path):
    topic = kafka.topic(2)
    desk = Desk(tmp_path, written(kafka, topic, key=lambda number: str(number % 3)))
    desk.run()
    desk.run()
    assert numbers(kafka, topic, 2) == EXPECTED
    per_partition = [{int(value) % 3 for value in values} for values in kafka.committed(topic, 2)]
    assert per_partition[0].isdisjoint(per_partition[1])


def test_no_message_is_lost_between_the_streaming_windows_of_an_application_window():
    writer = KafkaWriter(topic="topic", bootstrap_servers="localhost:1")
    attributes = {OperatorContext.APPLICATION_WINDOW_COUNT.qualified: 2}
    at_work = after_windows(writer, [["a"], ["b"], ["c"]], restarts=True, attributes=attributes)
    staged = (batch for entry in at_work.entries["staged"].added for batch in columns_in(entry))
    assert [message.value for batch in staged for message in messages_in(batch)] == [b"a", b"b", b"c"]


def test_a_partition_that_is_added_to_the_topic_meanwhile_is_written_too(kafka, tmp_path):
    topic = kafka.topic()
    settings = {"topic.metadata.refresh.interval.ms": 10, "sticky.partitioning.linger.ms": 0}
    desk = Desk(tmp_path, written(kafka, topic, settings=settings))
    desk.run(probe=when(Point.APPENDED, 2, lambda: kafka.add_partitions(topic, 3)))
    assert numbers(kafka, topic, 3) == EXPECTED


# ---- crashes


@pytest.mark.gate(2)
@pytest.mark.parametrize("point", [point for point in Point if point is not Point.HALF_FINISHED])
def test_every_message_is_there_once_wherever_the_driver_is_killed(kafka, tmp_path, point):
    topic = kafka.topic()
    desk = Desk(tmp_path, written(kafka, topic), backend=Hurried)
    assert desk.crash(CrashAfter(point), CrashAfter(point), CrashAfter(point, 3)) == 3
    desk.run()
    assert numbers(kafka, topic) == EXPECTED


def test_a_transaction_that_a_killed_driver_left_open_is_aborted_by_the_next_launch(kafka, tmp_path):
    topic = kafka.topic()
    desk = Desk(tmp_path, written(kafka, topic))
    assert desk.crash(CrashAfter(Point.APPENDED)) == 1
    (writer,) = writers(desk)
    left = kafka.producer(transactional_id=writer)
    left.init_transactions()
    left.begin_transaction()
    left.produce(topic, b"999")
    left.flush()
    desk.run()
    assert numbers(kafka, topic) == EXPECTED
    assert last(kafka, writer) > 0


def test_a_transaction_whose_commit_was_not_answered_is_found(kafka, tmp_path):
    topic = kafka.topic()
    desk = Desk(tmp_path, written(kafka, topic))
    desk.crash(CrashAfter(Point.DELIVERED))  # in the topic, and the launch did not hear of it
    assert numbers(kafka, topic)
    desk.run()
    assert numbers(kafka, topic) == EXPECTED


@pytest.mark.trial
def test_commits_whose_answers_are_lost_are_found_by_the_same_launch(kafka, tmp_path):
    topic = kafka.topic()
    with LosingCommits(kafka.address) as proxy:
        desk = Desk(tmp_path, written(kafka, topic, bootstrap_servers=proxy.address))

        def loses(point, window):
            if point is Point.APPENDED:
                proxy.lose(2)

        desk.run(probe=loses)
        assert proxy.lost >= 2 * len(LOOKS)
    assert numbers(kafka, topic) == EXPECTED


def writers(desk):
    ledger = desk.ledger()
    return [f"{ledger.chain(name).dataset_id}/writer.staged" for name in ledger.names() if name.startswith("tests")]


def last(broker, writer):
    settings = {"bootstrap.servers": broker.address}
    topics = Topics(settings)
    while True:
        with suppress(Unanswered):  # a loaded machine takes longer than the first request may
            return last_window(topics, "dagkit-windows", writer, settings)


# ---- bad input


NOWHERE = {"bootstrap_servers": "127.0.0.1:1", "waits_seconds": 0}
DAY = {"transaction.timeout.ms": 24 * 3600 * 1000}


@pytest.mark.parametrize(
    ("topic", "properties", "code", "problem"),
    [
        ("any", NOWHERE, "system-unavailable", r"Kafka at 127\.0\.0\.1:1 does not answer"),
        ("", {"settings": DAY}, "kafka-refused", "Transaction timeout is larger than the maximum"),
        ("none-of-these", {}, "topic-missing", "there is no topic 'none-of-these'"),
        ("", {"value": None}, "operator-failed", "the value 0 is neither text nor bytes; set `value`"),
    ],
    ids=["a cluster that is away for longer", "a timeout that the cluster does not allow", "no topic", "no text"],
)
def test_what_cannot_be_written_ends_the_launch(kafka, tmp_path, *, topic, properties, code, problem):
    with refused(code, problem):
        Desk(tmp_path, written(kafka, topic or kafka.topic(), **properties)).run()


@pytest.mark.parametrize("copies", [False, True], ids=["items", "messages as columns"])
def test_a_message_that_is_too_large_is_rejected(kafka, tmp_path, copies):
    source, target, at = kafka.topic(), kafka.topic(), {"bootstrap_servers": kafka.address}
    texts = ["1", "2" * 11, "3" * 10]
    kafka.produce(source, texts)
    of_topic = {"splitter": KafkaSplitter(topics=[source], **at), "reader": KafkaReader(**at)}

    def draw(dag, conf):
        first = of_topic if copies else {"items": Items(items=texts)}
        writer = placed(dag, **first, writer=KafkaWriter(topic=target, largest_message=10, **at))["writer"]
        reasons = dag.add_operator("reasons", Map(lambda bad: [getattr(bad.item, "place", None), bad.reason]))
        writer.rejected >> reasons >> dag.add_operator("collect", Collect())

    loop = Desk(tmp_path, draw).run()
    assert kafka.committed(target) == [[b"1", b"3" * 10]]
    place = f"{source}/0, offset 1" if copies else None
    assert arrived(loop) == [[place, "the message has 11 bytes, and largest_message is 10"]]


def test_a_message_that_the_broker_refuses_is_reported_and_nothing_of_its_window_is_visible(kafka, tmp_path):
    topic = kafka.topic(max_message_bytes="500")
    long = written(kafka, topic, value=lambda number: f"{number:0600}" if number == 3 else str(number))
    desk = Desk(tmp_path, long)
    with refused("write-refused", rf"a broker refuses a message: .* {topic} \[0\] .*MSG_SIZE_TOO_LARGE"):
        desk.run()
    assert kafka.committed(topic) == [[]]
    kafka.configure(topic, max_message_bytes="1000")
    desk.run()
    assert numbers(kafka, topic) == EXPECTED


def test_a_right_that_is_taken_while_it_runs_ends_the_launch_and_loses_nothing(kafka, tmp_path):
    topic = kafka.topic()
    desk = Desk(tmp_path, written(kafka, topic, **login(kafka)))
    with refused("kafka-refused", f"does not let the client write to {topic} and dagkit-windows"):
        desk.run(probe=when(Point.APPENDED, 2, lambda: kafka.forbid(topic)))
    assert numbers(kafka, topic) == list(range(20)), "the first window is there, and nothing of the second"
    kafka.allow(topic)
    desk.run()
    assert numbers(kafka, topic) == EXPECTED


def test_transactional_ids_begin_with_a_prefix_for_which_rights_are_granted(kafka, tmp_path):
    topic, admin = kafka.topic(), confluent().admin
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "alice"}
    given = {"bootstrap_servers": kafka.login_address, "settings": {**login, "sasl.password": "alice-secret"}}
    prefixed, operation, deny = admin.ResourcePatternType.PREFIXED, admin.AclOperation.ALL, admin.AclPermissionType.DENY
    rule = (admin.ResourceType.TRANSACTIONAL_ID, "team-b.", prefixed, "User:alice", "*", operation, deny)
    done(kafka.admin.create_acls([admin.AclBinding(*rule)]))
    with refused("kafka-refused"):
        Desk(tmp_path / "b", written(kafka, topic, **given, transactional_id_prefix="team-b.")).run()
    Desk(tmp_path / "a", written(kafka, topic, **given, transactional_id_prefix="team-a.")).run()
    assert numbers(kafka, topic) == EXPECTED


MESSAGES = [
    Outgoing(b"a", b"1", (("trace", b"x"), ("trace", None)), 5_000),
    Outgoing(None, b"2", (), None),
    Outgoing(b"c", None, (), 7_000),
    Outgoing(b"", b"", (), 8_000),
]


def staged_before(messages: list[Outgoing]) -> bytes:
    """An entry as it was staged before all columns were written: those without a value are missing."""
    keys, values, headers, times = zip(*messages, strict=True)
    columns = {"value": pa.array(values, pa.large_binary())}
    if any(key is not None for key in keys):
        columns["key"] = pa.array(keys, pa.large_binary())
    if any(headers):
        pair = pa.struct([("name", pa.string()), ("value", pa.binary())])
        listed = [[{"name": name, "value": value} for name, value in each] for each in headers]
        columns["headers"] = pa.array(listed, pa.list_(pair))
    if any(time is not None for time in times):
        columns["timestamp"] = pa.array(times, pa.int64())
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()


def staged_now(messages: list[Outgoing]) -> bytes:
    entry = OpenEntry()
    for batch in filter(None, (messages[:1], messages[1:])):
        entry.add(columns_of(batch))
    return entry.content().to_pybytes()


@pytest.mark.parametrize("staged", [staged_now, staged_before])
@pytest.mark.parametrize(
    "messages", [MESSAGES, MESSAGES[1:2], MESSAGES[2:3]], ids=["all columns", "a value", "no value"]
)
def test_an_entry_has_the_messages_that_were_staged(staged, messages):
    found = [message for columns in columns_in(staged(messages)) for message in messages_in(columns)]
    assert found == messages


@dataclass
class Window:
    """A committed window with one entry."""

    window_id: int
    entry: bytes

    def entries(self) -> Iterator[bytes]:
        yield self.entry


@dataclass
class Slow(Window):
    """A window whose second entry comes after the cluster has aborted its transaction."""

    cluster: Topics
    only: Partition

    def entries(self) -> Iterator[bytes]:
        yield self.entry
        while not (end := self._end(uncommitted=True)):
            pass
        while self._end() < end:
            pass
        yield self.entry

    def _end(self, *, uncommitted: bool = False) -> int:
        """Where the partition ends; 0 if the cluster does not answer in time."""
        try:
            return self.cluster.ends([self.only], uncommitted=uncommitted)[self.only]
        except Unanswered:
            return 0


def prepared(topic, settings):
    target = TransactionalTopic(settings, topic, "dagkit-windows")
    target.prepare(f"{topic}/writer")
    return target


# librdkafka has ended the process once when it freed the producer of such a transaction.
@pytest.mark.trial
@pytest.mark.slow
def test_a_transaction_that_is_open_for_too_long_is_reported_and_written_once_by_the_next_launch(kafka):
    topic, at = kafka.topic(), {**QUIET, "bootstrap.servers": kafka.address}
    entry = staged_now([Outgoing(None, b"1")])
    slow = prepared(topic, {**at, "transaction.timeout.ms": 1000})
    with pytest.raises(RunFailure, match=r"was open for longer than transaction\.timeout\.ms=1000") as raised:
        slow.apply(Slow(1, entry, Topics(at), Partition(topic, 0)))
    assert "set `transaction.timeout.ms`" in raised.value.help
    slow.close()
    next_launch = prepared(topic, at)
    next_launch.apply(Window(1, entry))
    next_launch.close()
    assert kafka.committed(topic) == [[b"1"]]


@pytest.mark.slow
def test_a_window_that_an_earlier_version_staged_is_delivered(kafka):
    topic = kafka.topic()
    target = prepared(topic, {**QUIET, "bootstrap.servers": kafka.address})
    target.apply(Window(1, staged_before([Outgoing(None, b"1"), Outgoing(None, b"2")])))
    target.apply(Window(2, staged_before([Outgoing(b"a", b"3", (("h", b"x"),), 5_000)])))
    target.close()
    assert kafka.committed(topic) == [[b"1", b"2", b"3"]]
