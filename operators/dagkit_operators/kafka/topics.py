"""What a cluster knows about its topics: their partitions, and the offsets that partitions have."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from dagkit_operators.kafka.client import Failures, confluent, create_client, kafka_refused, text_of

FIRST_SECONDS = 2.0
"""How long a request may take at first. After each one without an answer, the next may take twice as long."""
LONGEST_SECONDS = 60.0
_64_BITS = (1 << 64) - 1
NO_MESSAGE = -1
"""The offset of the first message since an instant, if there is none."""


class Unanswered(Exception):
    """The cluster does not answer now."""


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


class Topics:
    """Asks a cluster about its topics."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._address = str(settings["bootstrap.servers"])
        self._failures = Failures()
        # By default, asking about a missing topic creates it if the brokers allow that.
        self._admin = create_client("AdminClient", {**settings, "allow.auto.create.topics": False}, self._failures)
        self._library = library = confluent()
        self._spec = library.admin.OffsetSpec
        self._seconds = FIRST_SECONDS
        self._knows_leaders = True
        """Whether the leaders of partitions that the client remembers may be asked: its next request succeeded."""

    def partitions(self) -> dict[str, list[int]]:
        """The numbers of the partitions of each topic."""
        with self._answering():
            listed = self._admin.list_topics(timeout=self._seconds).topics
        return {name: sorted(topic.partitions) for name, topic in listed.items() if topic.error is None}

    def refusal(self, topic: str) -> str | None:
        """Why the client may not see a topic, which `partitions` then lacks; None if it may, or if there is none."""
        with self._answering():
            error = self._admin.list_topics(topic, timeout=self._seconds).topics[topic].error
        return text_of(error) if error is not None and error.name() == "TOPIC_AUTHORIZATION_FAILED" else None

    def ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The IDs of topics: a topic that is deleted and created again has another one. Old brokers know none."""
        wanted = self._library.TopicCollection(list(topics))
        with self._answering():
            asked = self._admin.describe_topics(wanted, request_timeout=self._seconds)
            ids = {topic: future.result().topic_id for topic, future in asked.items()}
        # The halves are signed numbers. A broker without IDs answers with zeros.
        bits = {
            topic: (uuid.get_most_significant_bits(), uuid.get_least_significant_bits()) for topic, uuid in ids.items()
        }
        return {
            topic: f"{high & _64_BITS:016x}{low & _64_BITS:016x}" for topic, (high, low) in bits.items() if high or low
        }

    def first(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offsets that partitions still have."""
        return self._offsets(partitions, self._spec.earliest())

    def ends(self, partitions: Iterable[Partition], *, uncommitted: bool = False) -> dict[Partition, int]:
        """The offsets at which partitions end: before open transactions, unless uncommitted messages are read."""
        return self._offsets(partitions, self._spec.latest(), uncommitted=uncommitted)

    def since(self, partitions: Iterable[Partition], millis: int) -> dict[Partition, int]:
        """The offsets of the first messages that are not older than an instant; -1 if all are."""
        return self._offsets(partitions, self._spec.for_timestamp(millis))

    def retention(self, topic: str) -> str:
        """The settings that decide when messages of a topic are removed; empty if the user may not read them."""
        admin = self._library.admin
        resource = admin.ConfigResource(admin.ResourceType.TOPIC, topic)
        with self._answering():
            asked = self._admin.describe_configs([resource], request_timeout=self._seconds)
            try:
                known = asked[resource].result()
            except self._library.KafkaException as failed:
                if failed.args[0].name() != "TOPIC_AUTHORIZATION_FAILED":
                    raise
                return ""
        return ", ".join(f"{name}={known[name].value}" for name in ("retention.ms", "retention.bytes"))

    def create(self, topic: str, settings: Mapping[str, str]) -> None:
        """Create a topic with one partition, unless it exists."""
        with self._answering():
            created = self._admin.create_topics([self._library.admin.NewTopic(topic, 1, config=dict(settings))])
            try:
                created[topic].result(self._seconds)
            except self._library.KafkaException as failed:
                # Another writer may have created it since it was looked for.
                if failed.args[0].name() != "TOPIC_ALREADY_EXISTS":
                    raise

    def _offsets(
        self, partitions: Iterable[Partition], spec: Any, *, uncommitted: bool = False
    ) -> dict[Partition, int]:
        library = self._library
        wanted = {library.TopicPartition(topic, number): spec for topic, number in partitions}
        if not wanted:
            return {}
        levels = library.IsolationLevel
        level = levels.READ_UNCOMMITTED if uncommitted else levels.READ_COMMITTED
        # A broker that was killed and started again refuses the old leader epochs, with which the client asks until it
        # lists the topics.
        if not self._knows_leaders:
            self.partitions()
        with self._answering():
            asked = self._admin.list_offsets(wanted, isolation_level=level, request_timeout=self._seconds)
            offsets = {
                Partition(place.topic, place.partition): future.result().offset for place, future in asked.items()
            }
        # A broker that is starting answers so.
        if any(offset < NO_MESSAGE for offset in offsets.values()):
            raise Unanswered("a broker does not know the offsets of its partitions yet")
        return offsets

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Raise Unanswered if the cluster does not answer, and `kafka-refused` if it refuses."""
        try:
            yield
        except self._library.KafkaException as failed:
            self._knows_leaders = False
            error = failed.args[0]
            self._failures.note(error)
            # The errors of connections arrive with a poll, and have the reason that the request lacks.
            self._admin.poll(0)
            self._failures.check(self._address)
            if error.retriable() or error.name() in PASSING:
                self._seconds = min(2 * self._seconds, LONGEST_SECONDS)
                raise Unanswered(self._failures.last) from failed
            raise kafka_refused(f"Kafka at {self._address} refuses a request: {text_of(error)}") from failed
        self._knows_leaders = True
        self._failures.clear()
        self._seconds = FIRST_SECONDS


PASSING = frozenset(
    (
        "_TRANSPORT",
        "_TIMED_OUT",
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_NOENT",  # a partition without a leader
        "_MSG_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "UNKNOWN_TOPIC_ID",
        "NOT_CONTROLLER",
        "_DESTROY_BROKER",
        "_WAIT_COORD",
        "_UNKNOWN_PARTITION",
        "_UNKNOWN_TOPIC",
        "_LEADER_NOT_AVAILABLE",
        "BROKER_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "REPLICA_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "NETWORK_EXCEPTION",
        "OFFSET_NOT_AVAILABLE",
        "KAFKA_STORAGE_ERROR",
        "UNKNOWN_TOPIC_OR_PART",
        "UNKNOWN_LEADER_EPOCH",
        "FENCED_LEADER_EPOCH",
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
    )
)
"""The names of errors that pass by themselves."""
