"""Topics of a real broker, read on the reference engine."""

import logging
import signal
import threading
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from pathlib import Path

import pytest

from dagkit import ApplicationFaults, OperatorContext, StatelessPartitioner, Until
from dagkit.compiler import compile_application
from dagkit.engine.program.points import Point
from dagkit.engine.record.run_events import Committed, Found, RunEvent
from dagkit.errors import RunFailure
from dagkit.ledger.audit.verify import verify
from dagkit.testing import Alone, FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import (
    AggregateByTime,
    KafkaMessage,
    KafkaReader,
    KafkaSplitter,
    Map,
    RecordWriter,
    TumblingWindows,
)
from dagkit_operators.kafka import consumers, topics
from tests.cases import cases
from tests.engine.cast import Collect, Desk, Hurried, arrived, blocks_after_polls
from tests.engine.poison_cast import die, killed, set_aside
from tests.operators.kafka.topics_cast import login, transact
from tests.operators.looking import at_outage, look_for_long, looks
from tests.operators.ways import placed, refused, when
from tests.patience import within

pytestmark = pytest.mark.slow

ENDLESS = pytest.mark.parametrize("endless", [False, True], ids=["ranges", "without an end"])


def number(message: KafkaMessage) -> int:
    return int(message.value)


def collected(broker, *topics, partitions=1, rejected=False, reader=(), **properties):
    """An application that collects the messages of topics."""

    def draw(dag, conf):
        at = {"bootstrap_servers": broker.address}
        split = KafkaSplitter(**{**at, "topics": topics, **properties})
        copies = placed(
            dag, splitter=split, reader=KafkaReader(**{**at, "parse": number, **dict(reader)}), collect=Collect()
        )
        dag.set_operator_attribute(copies["reader"], OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        if rejected:
            places = Map(lambda each: f"{each.path} {each.start} {each.text} {each.item.place}")
            copies["reader"].rejected >> dag.add_operator("places", places) >> dag.add_operator("refused", Collect())

    return draw


def numbers(loop):
    return sorted(arrived(loop))


def filled(broker, count=10, **config):
    topic = broker.topic(**config)
    broker.produce(topic, range(count))
    return topic


def as_it_runs(act):
    return when(Point.PLANNED, 1, act)


# ---- what is read


def test_all_messages_of_all_partitions_are_read_once_and_proven(kafka, tmp_path):
    topic = kafka.topic(2)
    kafka.produce(topic, range(100), partition=0)
    kafka.produce(topic, range(100, 150), partition=1)
    desk = Desk(tmp_path, collected(kafka, topic, range_size=30, partitions=2))
    assert numbers(desk.run()) == list(range(150))
    verdict = verify(desk.ledger())
    assert verdict.is_complete
    (proof,) = verdict.proven
    assert (proof.input, len(proof.sources), proof.positions) == ("reader.ranges", 2, 150)


def clients():
    return sum(thread.read_text() == "rdk:main\n" for thread in Path("/proc/self/task").glob("*/comm"))


@pytest.mark.parametrize("crashes", [False, True])
def test_a_run_leaves_no_client(kafka, tmp_path, crashes):
    topic, before = filled(kafka), clients()
    desk = Desk(tmp_path, collected(kafka, topic, range_size=3, partitions=2))
    if crashes:
        desk.crash(CrashAfter(Point.STAGED, 1))
    else:
        desk.run()
    assert clients() == before


def test_a_search_in_child_processes_reads_with_consumers_of_its_own(kafka, tmp_path):
    topic = kafka.topic(2)
    kafka.produce(topic, range(30), partition=0)
    kafka.produce(topic, range(30, 60), partition=1)  # its consumer is kept when that of the other partition is closed

    def number_or_failure(message):
        if number(message) == 29:
            raise RuntimeError("a defect")
        return number(message)

    draw = collected(kafka, topic, range_size=10, reader={"parse": number_or_failure})
    desk = Desk(tmp_path, draw, conf={"dt.attr.ON_POISON": "SET_ASIDE"})
    assert numbers(desk.run()) == [each for each in range(60) if each != 29]
    assert set_aside(desk) == [(29, 30)]


def test_only_committed_messages_are_read_and_the_ends_of_transactions_count_as_read(kafka, tmp_path):
    topic = kafka.topic()
    for value, commits in ((b"1", True), (b"2", False), (b"3", True)):
        transact(kafka, topic, value, commits=commits)
    kafka.settle(topic)
    desk = Desk(tmp_path, collected(kafka, topic))
    assert numbers(desk.run()) == [1, 3]
    assert verify(desk.ledger()).is_complete
    assert numbers(Desk(tmp_path / "all", collected(kafka, topic, uncommitted=True)).run()) == [1, 2, 3]


def test_a_compacted_topic_is_read_without_the_messages_that_are_gone(kafka, tmp_path):
    def there():
        return [int(value) for value in kafka.committed(topic)[0]]

    topic = kafka.topic(cleanup_policy="compact", segment_ms="50", min_cleanable_dirty_ratio="0.01")
    kafka.produce(topic, [(str(number % 3), number) for number in range(30)])
    latest = 29
    while there()[:3] != [27, 28, 29]:
        assert latest < 5000, "the broker compacts"
        latest += 1
        kafka.produce(topic, [("more", latest)])
    kafka.configure(topic, cleanup_policy="delete")
    before = there()
    read = numbers(Desk(tmp_path, collected(kafka, topic)).run())
    assert set(there()) <= set(read) <= set(before)
    assert len(read) == len(set(read))
    assert read[-1] == latest


@ENDLESS
def test_messages_after_an_open_transaction_wait_for_its_end(kafka, tmp_path, endless):
    topic = kafka.topic()
    desk = Desk(tmp_path, collected(kafka, topic, endless=endless))
    kafka.produce(topic, [1])
    with kafka.transaction("open") as producer:
        producer.produce(topic, b"2")
        producer.flush()
        kafka.produce(topic, [3])
        assert numbers(desk.run()) == [1]
        assert numbers(desk.run()) == [1]  # the kept consumer asks where the partition ends
    kafka.settle(topic)
    assert numbers(desk.run()) == [1, 2, 3]


def test_a_pattern_finds_topics_and_later_launches_find_new_topics_and_partitions(kafka, tmp_path, caplog):
    first = kafka.topic(name=f"north-{tmp_path.name}")
    kafka.produce(first, [1])
    pattern = rf"(north|south)-{tmp_path.name}"
    desk = Desk(tmp_path, collected(kafka, pattern=pattern, start="latest"))
    assert numbers(desk.run()) == []
    kafka.add_partitions(first, 2)
    second = kafka.topic(name=f"south-{tmp_path.name}")
    kafka.topic(name=f"east-{tmp_path.name}")
    kafka.produce(first, [2], partition=1)
    kafka.produce(second, [3])
    with caplog.at_level(logging.INFO):
        assert numbers(desk.run()) == [2, 3]
    assert f"topic {first} has a new partition 1, which is read from offset 0" in caplog.text
    assert f"topic {second} has a new partition 0, which is read from offset 0" in caplog.text


@ENDLESS
def test_a_topic_that_appears_after_a_look_that_found_none_is_read_from_its_start(kafka, tmp_path, endless):
    draw = collected(kafka, pattern=f"late-{tmp_path.name}", start="latest", endless=endless)
    desk = Desk(tmp_path, draw, backend=Hurried)
    assert numbers(desk.run()) == []
    kafka.produce(kafka.topic(name=f"late-{tmp_path.name}"), range(3))
    assert numbers(desk.run()) == [0, 1, 2]
    assert desk.faults() == []


def test_a_topic_and_a_partition_that_appear_while_it_runs_are_read_from_their_start(kafka, tmp_path):
    first = filled(kafka, name=f"one-{tmp_path.name}")

    def appear():
        kafka.produce(kafka.topic(name=f"two-{tmp_path.name}"), range(10, 20))
        kafka.add_partitions(first, 2)
        kafka.produce(first, range(20, 30), partition=1)

    often = {"interval_millis": 1, "topics_interval_millis": 1}
    draw = collected(kafka, pattern=rf"(one|two)-{tmp_path.name}", **often)
    assert numbers(Desk(tmp_path, draw, until=Until.IDLE).run(probe=as_it_runs(appear))) == list(range(30))


def test_a_topic_that_keeps_the_time_of_its_broker_has_that(kafka, tmp_path):
    topic = kafka.topic(message_timestamp_type="LogAppendTime")
    kafka.produce(topic, [1], timestamp=1_000)
    (time,) = arrived(Desk(tmp_path, collected(kafka, topic, reader={"parse": attrgetter("timestamp_millis")})).run())
    assert time > datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1000


def test_a_topic_that_is_no_longer_named_is_not_read(kafka, tmp_path):
    kept, dropped = kafka.topic(), kafka.topic()
    kafka.produce(kept, [1])
    kafka.produce(dropped, [2])
    assert numbers(Desk(tmp_path, collected(kafka, kept, dropped)).run()) == [1, 2]
    kafka.produce(kept, [3])
    kafka.produce(dropped, [4])
    desk = Desk(tmp_path, collected(kafka, kept, interval_millis=1), until=Until.IDLE)
    assert numbers(desk.run()) == [1, 2, 3]


@cases(
    "start, read",
    ("earliest", "earliest", [1, 2, 3]),
    ("latest", "latest", []),
    ("at an instant", datetime.fromtimestamp(2, UTC), [2, 3]),
    ("at an instant after the last message", datetime.fromtimestamp(9, UTC), []),
)
def test_the_first_look_begins(kafka, tmp_path, start, read):
    topic = kafka.topic()
    for value in (1, 2, 3):
        kafka.produce(topic, [value], timestamp=value * 1000)
    desk = Desk(tmp_path, collected(kafka, topic, start=start))
    assert numbers(desk.run()) == read
    kafka.produce(topic, [4])
    assert numbers(desk.run()) == [*read, 4]


# ---- ranges without an end


def test_a_range_without_an_end_is_continued_by_the_next_launch_in_order(kafka, tmp_path):
    topic = kafka.topic(2)
    desk = Desk(tmp_path, collected(kafka, topic, endless=True, partitions=2), backend=Hurried)
    for start in (0, 50):
        kafka.produce(topic, range(start, start + 50), partition=0)
        kafka.produce(topic, range(1000 + start, 1000 + start + 50), partition=1)
        read = arrived(desk.run())
        assert [one for one in read if one < 1000] == list(range(start + 50))
        assert [one for one in read if one >= 1000] == list(range(1000, 1000 + start + 50))
    assert desk.faults() == []


@pytest.mark.parametrize("compiled", [True, False], ids=["by C", "by Python"])
def test_messages_that_are_there_are_the_backlog_of_a_range_without_an_end(kafka, tmp_path, monkeypatch, compiled):
    if not compiled:
        monkeypatch.setattr(consumers, "native", lambda: None)
    draw = collected(kafka, filled(kafka), endless=True, reader={"batch_size": 1})
    events = list[RunEvent]()
    assert numbers(Desk(tmp_path, draw, backend=Hurried).run(observers=[events.append])) == list(range(10))
    waiting = [event.waiting_positions for event in events if isinstance(event, Committed)]
    assert set(waiting) & set(range(1, 10))
    assert waiting == sorted(waiting, reverse=True)
    assert waiting[-1] == 0


def test_messages_that_come_while_a_window_runs_are_seen_to_wait(kafka, tmp_path):
    topic, is_seen, waiting = filled(kafka), threading.Event(), []

    def number_once_more_are_seen(message):
        if number(message) == 9:
            kafka.produce(topic, range(10, 15))
            assert is_seen.wait(within(60))
        return number(message)

    def observe(event):
        match event:
            case Found(operator="splitter", positions=positions):
                waiting.append(positions)
                is_seen.set() if sum(waiting) == 15 else None
            case Committed():
                loop.stop()

    draw = collected(kafka, topic, endless=True, topics_interval_millis=20, reader={"parse": number_once_more_are_seen})
    loop = Desk(tmp_path, draw, until=Until.STOPPED).loop(observers=[observe])
    loop.run()
    assert waiting == [10, 5]


def test_messages_that_came_between_two_launches_are_seen_to_wait(kafka, tmp_path):
    topic, is_seen = filled(kafka), threading.Event()

    def number_once_it_is_seen(message):
        assert number(message) < 10 or is_seen.wait(within(60))
        return number(message)

    def observe(event):
        if isinstance(event, Found) and (event.blocks, event.positions) == (0, 5):
            is_seen.set()

    desk = Desk(tmp_path, collected(kafka, topic, endless=True, reader={"parse": number_once_it_is_seen}))
    desk.run()
    kafka.produce(topic, range(10, 15))
    assert numbers(desk.run(observers=[observe])) == list(range(15))


def test_the_backlogs_of_two_splitters_are_each_their_own(kafka, tmp_path):
    topics, events = {"one": filled(kafka, 3), "two": filled(kafka, 7)}, list[RunEvent]()

    def draw(dag, conf):
        at = {"bootstrap_servers": kafka.address}
        for name, topic in topics.items():
            splitter = dag.add_operator(name, KafkaSplitter(**at, topics=[topic], endless=True))
            reader = dag.add_operator(f"{name} reader", KafkaReader(**at, parse=number))
            splitter >> reader >> dag.add_operator(f"{name} collected", Collect())

    Desk(tmp_path, draw).run(observers=[events.append])
    found = {event.operator: event.positions for event in events if isinstance(event, Found)}
    assert found == {"one": 3, "two": 7}


# ---- outages


@contextmanager
def answers_after_a_report(broker):
    """The broker answers nothing until an outage is reported."""
    with broker.paused() as resume, at_outage(resume):
        yield


@pytest.fixture
def _brief(monkeypatch):
    """Questions to the broker that are not answered fail soon."""
    for asking in (consumers, topics):
        monkeypatch.setattr(asking, "FIRST_SECONDS", 0.3)


@pytest.mark.gate(1)
@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE])
@pytest.mark.usefixtures("_brief")
def test_a_launch_waits_for_a_broker_that_does_not_answer(kafka, tmp_path, until):
    desk = Desk(tmp_path, collected(kafka, filled(kafka), endless=True), until=until)
    with ExitStack() as outage:
        probe = as_it_runs(lambda: outage.enter_context(answers_after_a_report(kafka)))
        assert numbers(desk.run(probe=probe)) == list(range(10))


@pytest.mark.usefixtures("_brief")
def test_a_launch_that_drains_waits_for_a_broker_that_does_not_answer(kafka, tmp_path):
    topic = kafka.topic()
    draw = collected(kafka, topic, endless=True)
    assert numbers(Desk(tmp_path, draw).run()) == []
    kafka.produce(topic, range(5))
    with answers_after_a_report(kafka):
        assert numbers(Desk(tmp_path, draw, until=Until.DRAINED).run()) == list(range(5))


# ---- crashes


@pytest.mark.gate(1)
@ENDLESS
def test_a_launch_that_is_killed_at_any_step_loses_and_doubles_nothing(kafka, tmp_path, endless):
    topic = kafka.topic(2)
    desk = Desk(tmp_path, collected(kafka, topic, range_size=20, endless=endless), backend=Hurried)
    sent = 0
    for window in (None, None, None):
        for point in Point:
            kafka.produce(topic, range(sent, sent + 10), partition=sent % 20 // 10)
            sent += 10
            desk.crash(CrashAfter(point, window))
    assert numbers(desk.run()) == list(range(sent))
    assert desk.faults() == []


# ---- bad input


def test_a_topic_that_is_deleted_before_it_was_read_is_named_with_the_offset(kafka, tmp_path):
    topic, soon = filled(kafka), {"settings": {"topic.metadata.propagation.max.ms": 0}}
    with refused("topic-missing", rf"there is no partition {topic}/0 .* offset 0 would be read next"):
        Desk(tmp_path, collected(kafka, topic, reader=soon)).run(probe=as_it_runs(lambda: kafka.delete(topic)))


def test_a_right_that_is_taken_while_it_runs_ends_the_launch_and_loses_nothing(kafka, tmp_path):
    topic, known = filled(kafka), login(kafka)
    desk = Desk(tmp_path, collected(kafka, topic, **known, reader=known))
    with refused("kafka-refused", f"does not let the client read {topic}/0, offset 0"):
        desk.run(probe=as_it_runs(lambda: kafka.forbid(topic)))
    kafka.allow(topic)
    assert numbers(desk.run()) == list(range(10))


@pytest.mark.gate(1)
@pytest.mark.parametrize("client", ["splitter", "reader"])
def test_refused_credentials_end_the_launch_and_the_password_is_not_shown(kafka, tmp_path, client):
    wrong = login(kafka, **{"sasl.password": "wrong-secret"})
    given = wrong if client == "splitter" else {"reader": wrong}
    with refused("kafka-refused", f"Kafka at {kafka.login_address} refuses the client") as raised:
        Desk(tmp_path, collected(kafka, filled(kafka), **given)).run()
    assert "wrong-secret" not in str(raised.value)


def test_a_setting_that_the_client_refuses_is_named_and_its_property(kafka, tmp_path):
    with refused("kafka-refused", 'Invalid value "SLS" for configuration property "security.protocol"') as raised:
        Desk(tmp_path, collected(kafka, "any", settings={"security.protocol": "SLS"})).run()
    assert raised.value.help == "correct that setting in the property `settings`"


def test_ranges_that_were_removed_completely_can_be_skipped(kafka, tmp_path):
    topic = filled(kafka)
    desk = Desk(tmp_path, collected(kafka, topic, range_size=4, reader={"on_removed": "skip"}))
    assert numbers(desk.run(probe=as_it_runs(lambda: kafka.remove_before(topic, 0, 9)))) == [9]
    verdict = verify(desk.ledger())
    assert verdict.is_complete
    ((positions, skipped),) = [(proven.positions, proven.skipped) for proven in verdict.proven]
    assert (positions, [str(span) for span in skipped]) == (1, [f"kafka:{topic}/0[0, 9)"])


def test_removed_messages_can_be_skipped_without_the_right_to_read_the_settings_of_the_topic(kafka, tmp_path):
    topic, known = filled(kafka), login(kafka)
    kafka.allow_reading(topic)
    desk = Desk(tmp_path, collected(kafka, topic, **known, reader={**known, "on_removed": "skip"}))
    assert numbers(desk.run(probe=as_it_runs(lambda: kafka.remove_before(topic, 0, 9)))) == [9]


@pytest.mark.parametrize("count", [3, 20], ids=["shorter", "longer"])
def test_a_topic_that_was_created_again_is_not_taken_for_the_old_one(kafka, tmp_path, count):
    topic = filled(kafka)
    desk = Desk(tmp_path, collected(kafka, topic))
    desk.run()
    kafka.delete(topic)
    filled(kafka, count, name=topic)
    with refused("offsets-removed", f"topic {topic} was deleted and created again"):
        desk.run()


def test_a_topic_that_is_created_again_while_it_runs_is_not_taken_for_the_old_one(kafka):
    topic = filled(kafka)
    intervals = {"interval_millis": 0, "topics_interval_millis": 3_600_000}
    splitter = KafkaSplitter(bootstrap_servers=kafka.address, topics=[topic], **intervals)
    alone = Alone(splitter, now=lambda: datetime.now(UTC))
    next(None for _ in looks(alone) if alone.sent())
    kafka.delete(topic)
    filled(kafka, 3, name=topic)
    with pytest.raises(RunFailure, match=f"{topic}/0 ends at offset 3, and was read up to 10 before"):
        look_for_long(alone)


def test_messages_that_parse_refuses_or_without_an_event_time_are_rejected_with_their_places(kafka, tmp_path):
    topic = kafka.topic()
    kafka.produce(topic, [5, "x", -1, 7])
    reader = {"event_time": lambda value: None if value < 0 else value}
    loop = Desk(tmp_path, collected(kafka, topic, rejected=True, reader=reader)).run()
    assert (numbers(loop), reached(loop)) == ([5, 7], 7)
    unfit, timeless = arrived(loop, "refused")
    assert unfit == f"{topic}/0 1 x {topic}/0, offset 1"
    assert timeless.startswith(f"{topic}/0 2 -1 ")


def test_an_operator_that_fails_on_a_message_names_its_place(kafka, tmp_path):
    topic = kafka.topic()
    kafka.produce(topic, [1, 0])
    with refused("operator-failed", rf"ZeroDivisionError: .*\nof {topic}/0, offset 1;"):
        Desk(tmp_path, collected(kafka, topic, reader={"parse": lambda message: 1 / number(message)})).run()


RESET = {"topics": ["x"], "settings": {"auto.offset.reset": "earliest"}}


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({}, "neither topics nor pattern is set"),
        ({"pattern": "(?=x)"}, "is no regular expression"),
        (RESET, "the setting auto.offset.reset cannot be changed: set `start`"),
    ],
)
def test_a_splitter_that_could_lose_messages_is_refused(kafka, properties, problem):
    with pytest.raises(ApplicationFaults, match=problem):
        compile_application(collected(kafka, **properties))


# ---- event time


def summed(broker, topic, *, endless=True, interval_millis=100, **reader):
    """An application that sums messages by ten seconds of their event time."""
    at, ten = {"bootstrap_servers": broker.address}, TumblingWindows(millis=10_000)
    times = {"time": attrgetter("timestamp_millis"), "time_unit": "ms", "key": lambda message: "all"}

    def draw(dag, conf):
        copies = placed(
            dag,
            splitter=KafkaSplitter(**at, topics=[topic], endless=endless, interval_millis=interval_millis),
            reader=KafkaReader(**at, **reader),
            sums=AggregateByTime(**times, of=number, windows=ten),
            starts=Map(lambda result: [result.start.second, result.result]),
            collect=Collect(),
        )
        copies["sums"].late >> dag.add_operator("late", Collect())

    return draw


def at_seconds(broker, topic, partition, seconds):
    for second in seconds:  # of the second minute: 0 is no timestamp for the client
        broker.produce(topic, [second], partition=partition, timestamp=60_000 + second * 1000)


def reached(loop):
    watermark = loop.checkpoint.event_times.sent["reader"]
    return None if watermark is None else watermark.timestamp()


@cases(
    "given, expected",
    ("timestamps", {}, 12),
    ("out of order", {"out_of_order_millis": 1500}, 10.5),
    ("a field", {"event_time": "at", "parse": lambda message: {"at": number(message)}}, 120),
    ("a function", {"event_time": lambda second: second + 1, "parse": number, "time_unit": "s"}, 121),
)
def test_a_reader_reaches_the_latest_event_time(kafka, tmp_path, given, expected):
    topic = kafka.topic()
    for second in (7, 12, 9):
        kafka.produce(topic, [second * 10], timestamp=second * 1000)
    assert reached(Desk(tmp_path, collected(kafka, topic, reader=given)).run()) == expected


@ENDLESS
def test_the_partition_that_is_furthest_behind_holds_back_the_watermark(kafka, tmp_path, endless):
    topic = kafka.topic(2)
    at_seconds(kafka, topic, 0, range(40))
    at_seconds(kafka, topic, 1, range(13))
    desk = Desk(tmp_path, summed(kafka, topic, endless=endless), until=Until.IDLE)
    assert arrived(desk.run()) == [[0, 2 * sum(range(10))]]
    at_seconds(kafka, topic, 1, range(13, 35))
    loop = desk.run()
    assert [start for start, _ in arrived(loop)] == [0, 10, 20]
    assert arrived(loop)[2] == [20, 2 * sum(range(20, 30))]
    assert arrived(loop, "late") == []


class ThreeMinutes(FakeClock):
    """Stops a run after three minutes."""

    def __init__(self):
        super().__init__()
        self._ends = self.now() + timedelta(minutes=3)

    def wait(self, woken, until):
        super().wait(woken, until)
        if self.now() > self._ends:
            self.stop()


@pytest.mark.gate(1)
@ENDLESS
def test_an_idle_partition_is_let_go_and_comes_back(kafka, tmp_path, endless):
    topic, clock = kafka.topic(2), ThreeMinutes()
    at_seconds(kafka, topic, 0, range(25))
    if not endless:  # a partition is known from its first message on
        at_seconds(kafka, topic, 1, range(1))
    draw = summed(kafka, topic, endless=endless, interval_millis=20_000, idle_millis=120_000, poll_millis=20_000)
    desk = Desk(tmp_path, draw, until=Until.STOPPED, clock=clock)
    loop = desk.loop()
    clock.stop = loop.stop
    loop.run()
    assert arrived(loop) == [[0, sum(range(10))], [10, sum(range(10, 20))]]
    at_seconds(kafka, topic, 1, range(25, 45))
    at_seconds(kafka, topic, 0, range(25, 35))
    desk.until = Until.IDLE
    loop = desk.run()
    assert arrived(loop)[2:] == [[20, sum(range(20, 30)) + sum(range(25, 30))]]
    assert arrived(loop, "late") == []


@pytest.mark.trial
def test_a_message_that_kills_its_worker_is_set_aside_with_its_topic_partition_and_offset(kafka, tmp_path):
    topic = kafka.topic(2)
    kafka.produce(topic, range(40), partition=0)
    kafka.produce(topic, [*range(40, 60), "poison", *range(60, 80)], partition=1)

    def deadly(message):
        if message.value == b"poison":
            die("signal")
        return number(message)

    desk = Desk(tmp_path, collected(kafka, topic, reader={"parse": deadly}), conf={"dt.attr.ON_POISON": "SET_ASIDE"})
    assert killed(desk) == -signal.SIGSEGV
    assert numbers(desk.run()) == list(range(80))
    assert set_aside(desk) == [(20, 21)]
    (proof,) = verify(desk.ledger()).proven
    assert [str(span).partition("[")[2] for span in proof.aside] == ["20, 21)"]
    assert f"{topic}-1" in str(proof.aside[0]) or f"{topic}/1" in str(proof.aside[0])
    assert desk.faults() == []


def test_idle_partitions_of_an_endless_reader_add_no_block(kafka, tmp_path):
    topic = kafka.topic(3)

    def graph(dag, conf):
        splitter = KafkaSplitter(bootstrap_servers=kafka.address, topics=[topic], endless=True)
        reader = dag.add_operator("reader", KafkaReader(bootstrap_servers=kafka.address, poll_millis=5))
        texts, writer = Map(lambda message: message.place), RecordWriter(file_path=str(tmp_path / "out"))
        chained = dag.add_operator("splitter", splitter) >> reader >> dag.add_operator("texts", texts)
        chained >> dag.add_operator("writer", writer)

    first, last = blocks_after_polls(Desk(tmp_path, graph, until=Until.STOPPED), 10, 40)
    assert first == last
