"""Ranges of a real broker are split at every offset, and the number of their readers follows the backlog."""

from itertools import groupby

import pytest

from dagkit import Until
from dagkit.engine.record.backlogs import decisions
from dagkit.engine.record.run_events import Committed
from dagkit.ledger.audit.verify import verify
from dagkit.scaling import ScalingInputs, decide
from dagkit.testing import FakeClock, check_every_split_of
from dagkit_operators import KafkaReader, KafkaSplitter
from dagkit_operators.kafka.messages import KafkaRange
from tests.engine.cast import Collect, Desk, Hurried, arrived, chain
from tests.engine.parts.test_listeners import Roomy
from tests.operators.kafka.topics_cast import transact

pytestmark = pytest.mark.slow


@pytest.mark.trial
def test_every_split_of_a_range_gives_the_same_messages(kafka):
    topic = kafka.topic()
    kafka.produce(topic, range(8))
    reader = KafkaReader(bootstrap_servers=kafka.address, batch_size=2)
    proven = check_every_split_of(reader, KafkaRange(0, topic, 0, 1, 7))
    assert (proven.records, proven.cuts) == (6, 5)


@pytest.mark.trial
def test_every_split_of_a_range_with_transactions_gives_the_committed_messages(kafka):
    """Of six offsets, 0 and 4 have messages that are committed."""
    topic = kafka.topic()
    for commits in (True, False, True):
        transact(kafka, topic, b"x", commits=commits)
    kafka.settle(topic)
    whole = KafkaRange(0, topic, 0, 0, 6)
    reader = KafkaReader(bootstrap_servers=kafka.address, batch_size=1, parse=lambda message: message.offset)
    proven = check_every_split_of(reader, whole)
    assert (proven.records, proven.cuts) == (2, 5)


def test_the_number_of_readers_follows_the_backlog(kafka, tmp_path):
    topic, rounds = kafka.topic(2), iter((range(40), range(40, 80)))

    at = {"bootstrap_servers": kafka.address}
    split = KafkaSplitter(**at, topics=[topic], range_size=10, interval_millis=1)
    counted = {"policy": "apex", "max_readers": 3, "interval_millis": 0}
    read = KafkaReader(**at, parse=lambda message: int(message.value or b""), batch_size=5, **counted)
    draw = chain(splitter=split, reader=read, collect=Collect())

    def produce_or_stop():
        values = next(rounds, None)
        if values is None:
            loop.stop()
        else:
            for partition in range(2):
                kafka.produce(topic, values[partition::2], partition)

    counts = [1]

    def observe(happening):
        if isinstance(happening, Committed):
            counts.append(len(loop.run_state.program.operators["reader"]))
            if counts[-2] > counts[-1] == 1:
                produce_or_stop()

    produce_or_stop()
    desk = Desk(tmp_path, draw, Until.STOPPED, lambda backend: Hurried(Roomy(backend)), FakeClock())
    loop = desk.loop(observers=[observe])
    loop.run()
    assert [count for count, _ in groupby(counts) if count in (1, 3)] == [1, 3, 1, 3, 1]
    desk.until = Until.IDLE  # a loop that is stopped may leave work to the next one
    assert sorted(arrived(desk.run())) == list(range(80))
    made = [each.fact for each in decisions(desk.ledger(), "reader")]
    assert all(decide(ScalingInputs.model_validate(fact.inputs)).after == fact.after for fact in made)
    assert verify(desk.ledger()).is_complete
