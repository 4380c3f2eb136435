"""What can be wrong between an application and a Kafka cluster."""

from typing import ClassVar

from dagkit.errors import RunFailure, Scene


class TopicMissing(RunFailure):
    """A topic that is to be read or written does not exist."""

    code = "topic-missing"
    exit_code: ClassVar[int] = 5


class KafkaRefused(RunFailure):
    """The cluster refuses the credentials of the client, or what it asks for."""

    code = "kafka-refused"
    usual_help: ClassVar[str] = (
        "check `security.protocol` and the settings that begin with `sasl.` or `ssl.`, and the rights of the user"
    )
    exit_code: ClassVar[int] = 5


class OffsetsRemoved(RunFailure):
    """Messages were removed from a topic before they were read."""

    code = "offsets-removed"

    @classmethod
    def of(cls, topic: str, partition: int, offset: int, first: int, why: str) -> "OffsetsRemoved":
        """Messages from `offset` up to the partition's first offset are gone."""
        return cls(
            f"{topic}/{partition}: the messages from offset {offset} up to {first} were removed before they were "
            f"read; {why}",
            'keep messages longer; to continue at the first message that is there, set on_removed="skip"',
            Scene(source=f"kafka:{topic}/{partition}", position=offset),
        )


class TransactionFenced(RunFailure):
    """The cluster refuses the transaction of this writer: another launch took over, or it was open for too long."""

    code = "transaction-fenced"

    @classmethod
    def by_another(cls, topic: str, writer: str) -> "TransactionFenced":
        """Another producer took over the transactions of the writer: another launch of the application runs."""
        return cls(
            f"another launch writes to topic {topic} as {writer}, and fenced this one: this launch wrote nothing since",
            "let one launch of an application run at a time; a new launch continues after the last window of both",
        )

    @classmethod
    def after(cls, millis: int, topic: str) -> "TransactionFenced":
        """The cluster aborted a transaction that was open for longer than it may be."""
        return cls(
            f"a transaction with messages for topic {topic} was open for longer than transaction.timeout.ms={millis}, "
            "and the cluster aborted it: nothing of its window is in the topic, and nothing is lost",
            "set `transaction.timeout.ms` in `settings` to more than the messages of a window take, then launch again",
        )


class WriteRefused(RunFailure):
    """A broker refuses a message, and will do so again."""

    code = "write-refused"
    usual_help: ClassVar[str] = (
        "nothing of the window is in the topic, and nothing is lost: change the topic, then launch again"
    )
