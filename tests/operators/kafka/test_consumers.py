"""Consumers that are kept between readers: which one is lent, where it continues, and what a child process does."""

import os
import signal
import threading

import pytest

from dagkit_operators import KafkaReader
from dagkit_operators.kafka import consumers
from dagkit_operators.kafka.consumers import DEFAULTS, SKIPPED_MESSAGES, Consumers, Fetched, Positioned
from dagkit_operators.looks import outage_of
from tests.patience import join, within
from tests.services.broker import QUIET

pytestmark = pytest.mark.slow


@pytest.fixture(params=["compiled C", "Python"])
def kept(request, monkeypatch):
    """Consumers whose messages come as columns, or one by one."""
    if request.param == "Python":
        monkeypatch.setattr(consumers, "native", lambda: None)
    own = Consumers()
    yield own
    own.close()


def settings(broker):
    return {**DEFAULTS, **QUIET, "bootstrap.servers": broker.address, "isolation.level": "read_committed"}


def read(source, upto):
    found = []
    while source.offset < upto:
        messages = source.fetch(100).messages
        found += messages.offsets
        source.use(messages, len(messages))
    return found


def test_a_consumer_skips_a_few_messages_that_another_reader_has_read(kafka, kept):
    topic = kafka.topic()
    kafka.produce(topic, range(10))
    with kept.at(settings(kafka), topic, 0, 0, 100) as source:
        messages = source.fetch(100).messages
        source.use(messages, 2)
    assigned = source._queue
    with kept.at(settings(kafka), topic, 0, 6, 100) as second:
        assert second is source
        assert second._queue is assigned, "it was not assigned again"
        assert read(second, 10) == [6, 7, 8, 9]


def test_the_end_of_a_partition_before_skipped_messages_is_no_end(kafka, kept):
    topic = kafka.topic()
    kafka.produce(topic, range(3))
    with kept.at(settings(kafka), topic, 0, 0, 100) as source:
        assert read(source, 3) == [0, 1, 2]
        assert source.fetch(100).end == 3
    kafka.produce(topic, range(3, 8))
    with kept.at(settings(kafka), topic, 0, 5, 100) as again:
        assert again is source
        assert read(again, 8) == [5, 6, 7]
        assert again.fetch(100).end == 8


@pytest.mark.parametrize("offset", [0, SKIPPED_MESSAGES + 2], ids=["before it", "far behind it"])
def test_a_consumer_is_assigned_again_where_it_cannot_skip(kafka, kept, offset):
    topic = kafka.topic()
    kafka.produce(topic, range(SKIPPED_MESSAGES + 4))
    with kept.at(settings(kafka), topic, 0, 1, 1) as source:
        assert source.fetch(1).messages.offsets == [1]
    with kept.at(settings(kafka), topic, 0, offset, 100) as again:
        assert again is source, "one consumer for each partition"
        assert again.fetch(100).messages.offsets[0] == offset


@pytest.mark.gate(1)
def test_a_broker_that_does_not_answer_has_reported_no_end(kafka, kept, monkeypatch):
    monkeypatch.setattr(consumers, "FIRST_SECONDS", 0.3)
    topic = kafka.topic()
    kafka.produce(topic, range(3))
    with kept.at(settings(kafka), topic, 0, 0, 100) as source:
        assert read(source, 3) == [0, 1, 2]
        assert [source.fetch(100).end, source.fetch(100).end] == [3, 3]
        with kafka.paused():
            assert source.fetch(100) == Fetched()


SETTINGS = {**DEFAULTS, "bootstrap.servers": "127.0.0.1:1"}
ENDS_AFTER_SECONDS = round(within(30))


def test_a_child_makes_a_consumer_of_its_own_and_releases_none_of_its_parent():
    consumers = Consumers()
    with consumers.at(SETTINGS, "topic", 0, 0, 10):
        pass
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # no handler runs while the library waits
            signal.alarm(ENDS_AFTER_SECONDS)  # the library may wait for ever for threads that do not exist here
            with consumers.at(SETTINGS, "topic", 0, 0, 10):
                pass
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    consumers.close()


def test_a_child_lends_consumers_although_a_thread_of_its_parent_was_lending_one_at_the_fork():
    consumers, lending = Consumers(), threading.Event()

    def lends() -> None:
        with consumers._lock:
            lending.set()
            released.wait(0.1)

    released, thread = threading.Event(), threading.Thread(target=lends)
    thread.start()
    assert lending.wait(within(30))
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        os._exit(consumers._lend((), "topic", 0, 0) is not None)
    join(thread)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_messages_that_were_fetched_before_an_outage_are_no_answer(monkeypatch):
    reader, ends = KafkaReader(bootstrap_servers="fetched-before:1"), [5, None]
    outage = outage_of("Kafka at fetched-before:1")
    outage.failed("Connection refused")
    source = Positioned(None, None)
    monkeypatch.setattr(Positioned, "ask_end", lambda _, within: ends.pop())
    reader._note_answer(source)
    assert outage.is_on
    reader._note_answer(source)
    reader._note_answer(source)  # asks no more
    assert not outage.is_on
