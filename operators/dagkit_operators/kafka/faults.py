"""What can be wrong between an application and a Kafka cluster."""

from dagkit.errors import RunFailure, Scene


def topic_missing(problem: str, remedy: str) -> RunFailure:
    """A topic that is to be read or written does not exist."""
    return RunFailure(problem, remedy, code="topic-missing")


def kafka_refused(
    problem: str,
    remedy: str = "check `security.protocol` and the settings that begin with `sasl.` or `ssl.`, and the rights of the "
    "user",
) -> RunFailure:
    """The cluster refuses the credentials of the client, or what it asks for."""
    return RunFailure(problem, remedy, code="kafka-refused")


def offsets_removed(problem: str, remedy: str, scene: Scene | None = None) -> RunFailure:
    """Messages were removed from a topic before they were read."""
    return RunFailure(problem, remedy, scene or Scene(), code="offsets-removed")


def transaction_fenced(problem: str, remedy: str) -> RunFailure:
    """The cluster refuses the transaction of this writer: another launch took over, or it was open for too long."""
    return RunFailure(problem, remedy, code="transaction-fenced")
