"""Messages that reach a topic of a real broker once, in one transaction for each window."""

from contextlib import suppress
from typing import Any

import pytest

from dagkit import Dag, OperatorContext, StatelessPartitioner
from dagkit.engine.failures import OperatorFailed
from dagkit.engine.points import Point
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import Items, KafkaMessage, KafkaReader, KafkaSplitter, KafkaWriter, Map
from dagkit_operators.kafka.client import confluent
from dagkit_operators.kafka.entries import OpenEntry, Outgoing, columns_in, columns_of, messages_in
from dagkit_operators.kafka.topics import Topics, Unanswered
from dagkit_operators.kafka.windows import last_window
from tests.engine.cast import Collect, Desk, Digits, Draw, Hurried, Ranges, arrived
from tests.services.broker import Broker, done
from tests.services.losing_commits import LosingCommits

pytestmark = pytest.mark.slow

LOOKS = ((10, 10), (5,), (20,), (3, 4))
EXPECTED = list(range(52))


def written(broker: Broker, topic: str, looks: tuple[tuple[int, ...], ...] = LOOKS, **properties: Any) -> Draw:
    """An application that writes numbers to a topic, which two partitions stage."""

    def draw(dag: Dag, conf: object) -> None:
        digits = dag.add_operator("digits", Digits())
        dag.set_operator_attribute(digits, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        given = {"bootstrap_servers": broker.address, "value": str, **properties}
        dag.add_operator("ranges", Ranges(looks=looks)) >> digits
        digits >> dag.add_operator("writer", KafkaWriter(topic=topic, **given))

    return draw


def numbers(broker: Broker, topic: str, partitions: int = 1) -> list[int]:
    return sorted(int(value) for values in broker.committed(topic, partitions) for value in values)


def test_messages_are_staged_and_read_back_as_they_were():
    messages = [
        Outgoing(None, b"1"),
        Outgoing(b"k", None),
        Outgoing(b"", b"", (("a", b"x"), ("a", None)), 7),
    ]
    entry = OpenEntry()
    for batch in (messages, messages[:1]):
        entry.add(columns_of(batch))
    found = [message for columns in columns_in(entry.content()) for message in messages_in(columns)]
    assert found == [*messages, *messages[:1]]


def test_the_messages_of_a_window_are_written_once_and_numbered(kafka, tmp_path):
    topic = kafka.topic(2)
    desk = Desk(tmp_path, written(kafka, topic, key=lambda number: str(number % 3)))
    desk.run()
    desk.run()
    assert numbers(kafka, topic, 2) == EXPECTED
    per_partition = [{int(value) % 3 for value in values} for values in kafka.committed(topic, 2)]
    assert per_partition[0].isdisjoint(per_partition[1])


def test_a_message_is_copied_with_its_key_its_headers_and_its_time(kafka, tmp_path):
    source, target = kafka.topic(), kafka.topic()
    kafka.produce(source, [("a", "1"), ("b", None)], timestamp=5_000, headers=[("trace", b"x")])

    def draw(dag: Dag, conf: object) -> None:
        at = {"bootstrap_servers": kafka.address}
        splitter = dag.add_operator("splitter", KafkaSplitter(topics=[source], **at))
        (
            splitter
            >> dag.add_operator("reader", KafkaReader(**at))
            >> dag.add_operator("w", KafkaWriter(topic=target, **at))
        )

    Desk(tmp_path / "copy", draw).run()

    def read(dag: Dag, conf: object) -> None:
        at = {"bootstrap_servers": kafka.address}
        splitter = dag.add_operator("splitter", KafkaSplitter(topics=[target], **at))
        reader = dag.add_operator("reader", KafkaReader(parse=repr, **at))
        splitter >> reader >> dag.add_operator("collect", Collect())

    assert arrived(Desk(tmp_path / "read", read).run()) == [
        repr(KafkaMessage(target, 0, 0, 5_000, b"a", b"1", (("trace", b"x"),))),
        repr(KafkaMessage(target, 0, 1, 5_000, b"b", None, (("trace", b"x"),))),
    ]


def test_a_partition_that_is_added_to_the_topic_meanwhile_is_written_too(kafka, tmp_path):
    topic = kafka.topic()
    settings = {"topic.metadata.refresh.interval.ms": 10, "sticky.partitioning.linger.ms": 0}
    desk = Desk(tmp_path, written(kafka, topic, settings=settings))

    def grows(point: Point, window: int) -> None:
        if (point, window) == (Point.APPENDED, 2):
            kafka.add_partitions(topic, 3)

    desk.run(probe=grows)
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
    in_topic = numbers(kafka, topic)
    assert in_topic
    desk.run()
    assert numbers(kafka, topic) == EXPECTED


@pytest.mark.trial
def test_commits_whose_answers_are_lost_are_found_by_the_same_launch(kafka, tmp_path):
    topic = kafka.topic()
    with LosingCommits(kafka.address) as proxy:
        desk = Desk(tmp_path, written(kafka, topic, bootstrap_servers=proxy.address))

        def loses(point: Point, window: int) -> None:
            if point is Point.APPENDED:
                proxy.lose(2)

        desk.run(probe=loses)
        assert proxy.lost >= 2 * len(LOOKS)
    assert numbers(kafka, topic) == EXPECTED


def writers(desk: Desk) -> list[str]:
    ledger = desk.ledger()
    return [f"{ledger.chain(name).dataset_id}/writer.staged" for name in ledger.names() if name.startswith("tests")]


def last(broker: Broker, writer: str) -> int:
    settings = {"bootstrap.servers": broker.address}
    topics = Topics(settings)
    while True:
        with suppress(Unanswered):  # a loaded machine takes longer than the first request may
            return last_window(topics, "dagkit-windows", writer, settings)


# ---- bad input


def test_a_writer_that_another_producer_fenced_writes_nothing(kafka, tmp_path):
    topic = kafka.topic()
    desk = Desk(tmp_path, written(kafka, topic))

    def fences(point: Point, window: int) -> None:
        if (point, window) == (Point.APPENDED, 2):
            (writer,) = writers(desk)
            kafka.producer(transactional_id=writer).init_transactions()

    with pytest.raises(OperatorFailed, match=f"another launch writes to topic {topic} as ") as raised:
        desk.run(probe=fences)
    assert raised.value.code == "transaction-fenced"
    desk.run()
    assert numbers(kafka, topic) == EXPECTED


def test_a_cluster_that_is_away_for_longer_than_the_writer_waits_ends_the_launch(kafka, tmp_path):
    desk = Desk(tmp_path, written(kafka, "any", bootstrap_servers="127.0.0.1:1", waits_seconds=0))
    with pytest.raises(OperatorFailed, match=r"Kafka at 127\.0\.0\.1:1 does not answer") as raised:
        desk.run()
    assert raised.value.code == "system-unavailable"


def test_a_timeout_of_transactions_that_the_cluster_does_not_allow_is_reported(kafka, tmp_path):
    day = {"transaction.timeout.ms": 24 * 3600 * 1000}
    with pytest.raises(OperatorFailed, match="Transaction timeout is larger than the maximum") as raised:
        Desk(tmp_path, written(kafka, kafka.topic(), settings=day)).run()
    assert raised.value.code == "kafka-refused"


def test_a_topic_that_does_not_exist_is_reported_before_anything_is_read(kafka, tmp_path):
    desk = Desk(tmp_path, written(kafka, f"none-{tmp_path.name}"))
    with pytest.raises(OperatorFailed, match=f"there is no topic 'none-{tmp_path.name}'") as raised:
        desk.run()
    assert raised.value.code == "topic-missing"


def test_a_message_that_is_too_large_is_rejected(kafka, tmp_path):
    topic = kafka.topic()

    def draw(dag: Dag, conf: object) -> None:
        writer = dag.add_operator(
            "writer", KafkaWriter(bootstrap_servers=kafka.address, topic=topic, largest_message=10)
        )
        dag.add_operator("items", Items(items=["1", "2" * 11, "3" * 10])) >> writer
        reasons = dag.add_operator("reasons", Map(lambda rejected: rejected.reason))
        dag.add_stream("rejected", writer.rejected, reasons.input)
        reasons >> dag.add_operator("collect", Collect())

    loop = Desk(tmp_path, draw).run()
    assert kafka.committed(topic) == [[b"1", b"3" * 10]]
    assert arrived(loop) == ["the message has 11 bytes, and largest_message is 10"]


def test_a_message_that_is_copied_and_too_large_is_rejected(kafka, tmp_path):
    source, target = kafka.topic(), kafka.topic()
    kafka.produce(source, ["1", "2" * 11, "3" * 10])

    def draw(dag: Dag, conf: object) -> None:
        at = {"bootstrap_servers": kafka.address}
        splitter = dag.add_operator("splitter", KafkaSplitter(topics=[source], **at))
        writer = dag.add_operator("writer", KafkaWriter(topic=target, largest_message=10, **at))
        splitter >> dag.add_operator("reader", KafkaReader(**at)) >> writer
        reasons = dag.add_operator("reasons", Map(lambda rejected: rejected.item.place))
        dag.add_stream("rejected", writer.rejected, reasons.input)
        reasons >> dag.add_operator("collect", Collect())

    loop = Desk(tmp_path, draw).run()
    assert kafka.committed(target) == [[b"1", b"3" * 10]]
    assert arrived(loop) == [f"{source}/0, offset 1"]


def test_a_message_that_the_broker_refuses_is_reported_and_nothing_of_its_window_is_visible(kafka, tmp_path):
    topic = kafka.topic(max_message_bytes="500")
    long = written(kafka, topic, value=lambda number: f"{number:0600}" if number == 3 else str(number))
    desk = Desk(tmp_path, long)
    with pytest.raises(
        OperatorFailed, match=rf"a broker refuses a message: .* {topic} \[0\] .*MSG_SIZE_TOO_LARGE"
    ) as raised:
        desk.run()
    assert raised.value.code == "write-refused"
    assert kafka.committed(topic) == [[]]
    kafka.configure(topic, max_message_bytes="1000")
    desk.run()
    assert numbers(kafka, topic) == EXPECTED


def test_a_right_that_is_taken_while_it_runs_ends_the_launch_and_loses_nothing(kafka, tmp_path):
    topic = kafka.topic()
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "alice"}
    settings = {**login, "sasl.password": "alice-secret"}
    desk = Desk(tmp_path, written(kafka, topic, bootstrap_servers=kafka.login_address, settings=settings))

    def forbids(point: Point, window: int) -> None:
        if (point, window) == (Point.APPENDED, 2):
            kafka.forbid(topic)

    with pytest.raises(OperatorFailed, match=f"does not let the client write to {topic} and dagkit-windows") as raised:
        desk.run(probe=forbids)
    assert raised.value.code == "kafka-refused"
    assert numbers(kafka, topic) == list(range(20)), "the first window is there, and nothing of the second"
    kafka.allow(topic)
    desk.run()
    assert numbers(kafka, topic) == EXPECTED


def test_an_item_that_is_no_text_is_refused(kafka, tmp_path):
    with pytest.raises(OperatorFailed, match="the value 0 is neither text nor bytes; set `value`"):
        Desk(tmp_path, written(kafka, kafka.topic(), value=None)).run()


def test_transactional_ids_begin_with_a_prefix_for_which_rights_are_granted(kafka, tmp_path):
    topic, admin = kafka.topic(), confluent().admin
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "alice"}
    given = {"bootstrap_servers": kafka.login_address, "settings": {**login, "sasl.password": "alice-secret"}}
    prefixed, operation, deny = admin.ResourcePatternType.PREFIXED, admin.AclOperation.ALL, admin.AclPermissionType.DENY
    rule = (admin.ResourceType.TRANSACTIONAL_ID, "team-b.", prefixed, "User:alice", "*", operation, deny)
    done(kafka.admin.create_acls([admin.AclBinding(*rule)]))
    with pytest.raises(OperatorFailed) as raised:
        Desk(tmp_path / "b", written(kafka, topic, **given, transactional_id_prefix="team-b.")).run()
    assert raised.value.code == "kafka-refused"
    Desk(tmp_path / "a", written(kafka, topic, **given, transactional_id_prefix="team-a.")).run()
    assert numbers(kafka, topic) == EXPECTED
