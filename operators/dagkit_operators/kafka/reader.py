"""Reading messages of topics."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Generic, Literal

from pydantic import NonNegativeInt, PositiveInt
from typing_extensions import TypeVar

from dagkit import (
    Arrowed,
    Batch,
    Column,
    Constant,
    InputPort,
    Listed,
    Outage,
    OutputPort,
    SplittableOperator,
    auto_metric,
)
from dagkit.errors import RunFailure, Scene
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit_operators.following import FollowsBacklog
from dagkit_operators.kafka.client import KafkaClient, kafka_refused, offsets_removed, text_of, topic_missing
from dagkit_operators.kafka.consumers import CONSUMERS, DEFAULTS, Fetched, Messages, Positioned
from dagkit_operators.kafka.messages import KafkaMessage, KafkaRange, place_of
from dagkit_operators.kafka.topics import Partition, Topics, Unanswered
from dagkit_operators.looks import defer_unanswered, outage_of
from dagkit_operators.payloads import Rejected, why_invalid
from dagkit_operators.reading.conversion import as_text
from dagkit_operators.records.rejecting import ItemRejected
from dagkit_operators.values.keys import Key
from dagkit_operators.values.processed import returned_by
from dagkit_operators.values.timed_elements import TimedElements

T = TypeVar("T", default=KafkaMessage)
Tracker = RestrictionTracker[OffsetRange, int]

_ANSWERS_WITHIN_SECONDS = 1.0
_log = logging.getLogger(__name__)


class KafkaReader(KafkaClient, TimedElements, FollowsBacklog, SplittableOperator[KafkaRange], Generic[T]):
    """Reads messages of topics, and sends them, or what `parse` returns for each.

    Connect it to a `KafkaSplitter`, which decides what is read: the topics, the first offsets, and whether only
    committed messages. All partitions of the operator share the ranges that the splitter sends. If `parse` refuses a
    message, the message goes to `rejected`; if that is not connected, the run fails with ItemRejected. If the cluster
    does not answer, the reader waits until it does.
    """

    kind = "kafka.reader/1"
    stateless = True
    position_unit = "offset"
    ranges = InputPort(KafkaRange, main=True)
    messages = OutputPort[T](main=True)
    rejected = OutputPort(Rejected)
    messages_removed = auto_metric(0)
    """Offsets that were skipped because their messages were removed."""

    parse: Callable[[KafkaMessage], T] | None = None
    """Makes an item of a KafkaMessage, and raises ValueError if it is invalid; None: the messages are sent.

    A message has `topic`, `partition`, `offset`, `timestamp_millis`, `headers`, and as bytes or None `key` and `value`.
    """
    on_removed: Literal["fail", "skip"] = "fail"
    """What to do if messages were removed before they were read: fail, or continue at the first that is there."""
    batch_size: PositiveInt = 10_000
    """The most messages that are claimed and sent at a time."""
    poll_millis: NonNegativeInt = 100
    """For a range without an end: the time until a partition without new messages is read again."""
    event_time: Key = None
    """The event time of an item: a function of it, or a field of it. None: the timestamp of the message."""

    def sent_payload(self, port: str, received: Mapping[str, Any]) -> Any:  # noqa: ARG002 - what the topics hold
        return None if port != "messages" or self.parse is None else returned_by(self.parse)

    def truncate(self, element: KafkaRange, restriction: OffsetRange) -> OffsetRange | None:
        """The range up to the current end of the partition; the range itself if the cluster does not answer."""
        if restriction.is_bounded():
            return restriction
        partition = Partition(element.topic, element.partition)
        try:
            end = self._topics().ends([partition], uncommitted=element.uncommitted)[partition]
        except Unanswered:
            return restriction
        return restriction.truncate(end) if end > restriction.start else None

    @property
    def estimates_watermark(self) -> bool:
        return True

    @property
    def sources_grow(self) -> bool:
        return True

    def process(self, element: KafkaRange, tracker: Tracker) -> Iterator[Batch[Any]]:
        level = "read_uncommitted" if element.uncommitted else "read_committed"
        settings = self.client_settings(**{**DEFAULTS, "isolation.level": level})
        start = tracker.current_restriction().start
        # A range without offsets only records where the splitter began.
        if start >= tracker.current_restriction().stop:
            return
        with CONSUMERS.at(settings, element.topic, element.partition, start, self.batch_size) as source:
            while source.offset < tracker.current_restriction().stop:
                fetched = source.fetch(self.batch_size)
                granted = tracker.claim_many(fetched.messages.offsets)
                # The consumer keeps those that were not granted: they belong to the next range, or to one split off.
                source.use(fetched.messages, granted)
                if granted:
                    self._note_answer(source)
                    tracker.see_end(source.last_known_end)
                    yield self._batch(element, fetched.messages.sliced(0, granted))
                if granted < len(fetched.messages):
                    return
                if not granted and not self._handle_event(source, fetched, tracker):
                    return

    def _handle_event(self, source: Positioned, fetched: Fetched, tracker: Tracker) -> bool:
        """Handle a fetch without messages. Return whether to fetch again."""
        if fetched.error is not None:
            return self._handle_error(source, fetched.error, tracker)
        if fetched.end is None:
            self._wait_for_answer(source, tracker)
            return False
        self._note_answer(source)
        tracker.see_end(fetched.end)
        # The last offsets before the end may hold no messages, but the ends of transactions.
        if fetched.end > source.offset and tracker.try_claim(fetched.end - 1):
            source.offset = fetched.end
        if fetched.end < tracker.current_restriction().stop:
            tracker.defer_remainder(timedelta(milliseconds=self.poll_millis))
        return False

    def _handle_error(self, source: Positioned, error: Any, tracker: Tracker) -> bool:
        """Handle an error of a partition. Return whether to fetch again."""
        if error.name() == "_AUTO_OFFSET_RESET":
            return self._skip_removed(source, text_of(error), tracker)
        if error.name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"):
            raise self._missing(source)
        if error.name() == "TOPIC_AUTHORIZATION_FAILED":
            raise self._forbidden(source, text_of(error))
        source.failures.note(error)
        self._wait(source, text_of(error), tracker)
        return False

    def _skip_removed(self, source: Positioned, reason: str, tracker: Tracker) -> bool:
        """Continue after messages that were removed, or raise offsets-removed. Return whether to fetch again."""
        partition, topics = Partition(source.topic, source.partition), self._topics()
        try:
            first, retention = topics.first([partition])[partition], topics.retention(partition.topic)
            is_there = first <= source.offset <= topics.ends([partition], uncommitted=True)[partition]
        except Unanswered as failure:
            reason, is_there = str(failure), True
        # A broker that was just started, or is very busy, refuses offsets before it knows its partition.
        if is_there:
            self._wait(source, reason, tracker)
            return False
        # An offset beyond the end is that of another topic of the same name, whose first messages must not be skipped.
        if self.on_removed == "fail" or first <= source.offset:
            raise removed(partition, source.offset, first, retention)
        _log.warning("%s", removed(partition, source.offset, first, retention).problem)
        before = source.offset
        # The removed offsets are claimed, and then reported as skipped, so that the ledger does not count them as read.
        if not tracker.try_claim(first - 1):
            first = tracker.current_restriction().stop
        self.messages_removed += first - before
        tracker.skip(before, first)
        source.go_to(*partition, first, self.batch_size)
        return True

    def _missing(self, source: Positioned) -> RunFailure:
        return topic_missing(
            f"there is no partition {source.topic}/{source.partition} at {self.bootstrap_servers} any more; offset "
            f"{source.offset} would be read next",
            "create the topic again with its messages, or begin with a new application folder",
        )

    def _forbidden(self, source: Positioned, reason: str) -> RunFailure:
        place = place_of(source.topic, source.partition, source.offset)
        return kafka_refused(f"Kafka at {self.bootstrap_servers} does not let the client read {place}: {reason}")

    def _wait_for_answer(self, source: Positioned, tracker: Tracker) -> None:
        """Defer the rest. Raise topic-missing if the cluster is there, and the partition is not."""
        source.failures.check(self.bootstrap_servers)
        # A consumer of a partition that is gone gets neither messages nor an error.
        topics = self._topics()
        try:
            there = topics.partitions()
            refusal = None if source.topic in there else topics.refusal(source.topic)
        except Unanswered as failure:
            self._wait(source, str(failure), tracker)
            return
        if refusal is not None:
            raise self._forbidden(source, refusal)
        if source.partition not in there.get(source.topic, ()):
            raise self._missing(source)
        self._wait(source, "it sends no messages", tracker)

    def _topics(self) -> Topics:
        return Topics(self.client_settings())

    def _wait(self, source: Positioned, reason: str, tracker: Tracker) -> None:
        """Defer the rest: the cluster does not answer."""
        source.failures.check(self.bootstrap_servers)
        source.leave()
        defer_unanswered(tracker, self._outage(), source.failures.last or reason)

    def _note_answer(self, source: Positioned) -> None:
        """Note that the cluster answers again, if it does: what the reader has may have been fetched before."""
        outage = self._outage()
        if outage.is_on and source.ask_end(_ANSWERS_WITHIN_SECONDS) is not None:
            outage.is_over()

    def _outage(self) -> Outage:
        return outage_of(f"Kafka at {self.bootstrap_servers}")

    def _batch(self, element: KafkaRange, messages: Messages) -> Batch[Any]:
        """The items of messages."""
        count, offsets = len(messages), messages.offsets
        batch: Batch[KafkaMessage] = Batch(
            {
                "topic": Constant(element.topic, count),
                "partition": Constant(element.partition, count),
                "offset": Listed(offsets, lambda: offsets),
                "timestamp_millis": messages.times,
                "key": messages.key,
                "value": messages.value,
                "headers": messages.headers,
            },
            KafkaMessage,
        )
        latest = _latest(messages.times)
        if self.event_time is None and latest >= 0:
            self.observe([latest * 1000])
        return batch if self.parse is None and self.event_time is None else self._parsed(batch.items())

    def _parsed(self, messages: Sequence[KafkaMessage]) -> Batch[Any]:
        """What `parse` makes of messages. Send those that it refuses, or that have no event time, to `rejected`."""
        items: list[Any] = []
        offsets: list[int] = []
        times: list[int] = []
        for message in messages:
            try:
                item = message if self.parse is None else self.parse(message)
                if self.event_time is not None:
                    times.append(self.time_of(item))
            except ValueError as fault:
                self._reject(message, fault)
            except Exception as error:
                error.add_note(f"of {message.place}; only a ValueError rejects a message, any other exception fails")
                raise
            else:
                items.append(item)
                offsets.append(message.offset)
        self.observe(times)
        return Batch.of_column(Listed(items, lambda: offsets))

    def _reject(self, message: KafkaMessage, fault: ValueError) -> None:
        text = "" if message.value is None else as_text(message.value)
        rejected = Rejected(f"{message.topic}/{message.partition}", message.offset, text, why_invalid(fault), message)
        if not self.rejected.is_connected:
            raise ItemRejected(rejected, message.place) from fault
        self.rejected.emit(rejected)


def _latest(times: Column) -> int:
    if isinstance(times, Arrowed):
        import pyarrow.compute as pc  # noqa: PLC0415 - compiling must not load Arrow

        latest: int = pc.max(times.arrow).as_py()
        return latest
    return max(map(int, times.values()))


def removed(partition: Partition, offset: int, first: int, retention: str) -> RunFailure:
    """The failure for messages that are gone, or for a partition that ends before an offset that was found."""
    scene = Scene(source=f"kafka:{partition}", position=offset)
    if first > offset:
        setting = f"; topic {partition.topic} has {retention}" if retention else ""
        return offsets_removed(
            f"{partition}: the messages from offset {offset} up to {first} were removed before they were read{setting}",
            'keep messages longer; to continue at the first message that is there, set on_removed="skip"',
            scene,
        )
    return offsets_removed(
        f"{partition} has no offset {offset} any more: the topic was deleted and created again, or its "
        "brokers lost messages",
        "read the new topic with a new application folder",
        scene,
    )
