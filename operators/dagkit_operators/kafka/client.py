"""The client of a Kafka cluster: its settings, what its errors mean, and the failures that are reported."""

import logging
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from dagkit import Operator
from dagkit.api.secrets import SecretByName
from dagkit.errors import RunFailure, Scene, did_you_mean
from dagkit_operators.libraries import library
from dagkit_operators.native.librdkafka import setting_names
from dagkit_operators.tables.storage import plain


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


_SECRET_SETTINGS = ("ssl.key.pem", "sasl.oauthbearer.config")
"""Settings that are secret although their names do not show it."""

_DECIDED: Mapping[str, str] = {
    "bootstrap.servers": "set the property `bootstrap_servers`",
    "auto.offset.reset": "set `start` of the KafkaSplitter, and `on_removed` of the KafkaReader",
    "isolation.level": "set `uncommitted` of the KafkaSplitter",
    "enable.auto.commit": "the ledger has the offsets",
    "enable.auto.offset.store": "the ledger has the offsets",
    "enable.partition.eof": "the KafkaReader needs it",
    "transactional.id": "the KafkaWriter makes it; set `transactional_id_prefix` of the writer",
}
"""Settings that the operators make, each with what to do instead: other values would lose or double messages."""

_REFUSED = frozenset(
    (
        "_AUTHENTICATION",
        "_SSL",
        "SASL_AUTHENTICATION_FAILED",
        "UNSUPPORTED_SASL_MECHANISM",
        "ILLEGAL_SASL_STATE",
        "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    )
)
"""The names of errors that no repetition cures."""

_quiet = logging.getLogger(f"{__name__}.librdkafka")
"""Receives what the client library logs. It is not shown by default, because operators report each error once."""
_quiet.setLevel(logging.CRITICAL)


class KafkaClient(Operator):
    """The properties of an operator that connects to a Kafka cluster."""

    bootstrap_servers: str = Field(default=...)
    """The addresses of some brokers, such as `one.example:9092,two.example:9092`."""
    settings: Mapping[str, Annotated[str | int | float | bool | SecretStr, SecretByName(_SECRET_SETTINGS)]] = {}
    """Further settings of the client by their librdkafka names, such as `security.protocol` or `sasl.username`.

    The values of names such as `sasl.password` are secret: no message and no plan shows them. Settings that the
    operators make themselves, such as `auto.offset.reset` and `isolation.level`, are refused.
    """

    @field_validator("settings")
    @classmethod
    def _hides_secrets(cls, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        hidden = {name: SecretStr(settings[name]) for name in _SECRET_SETTINGS if isinstance(settings.get(name), str)}
        return {**settings, **hidden}

    @model_validator(mode="after")
    def _leaves_known_settings(self) -> Self:
        for name in self.settings:
            if name in _DECIDED:
                raise ValueError(f"the setting {name} cannot be changed: {_DECIDED[name]}")
            known = setting_names()
            # Without the list, a wrong name is refused only when a client is made, after the application was compiled.
            if known and name not in known:
                meant = did_you_mean(name, sorted(known), "librdkafka's CONFIGURATION.md lists them")
                raise ValueError(f"the client library has no setting {name}; {meant}")
        return self

    def client_settings(self, **defaults: Any) -> dict[str, Any]:
        """The settings of a client. What the author set overrides the defaults, in whose names `_` stands for a dot."""
        named = {name.replace("_", "."): value for name, value in defaults.items()}
        return {**named, **plain(self.settings), "bootstrap.servers": self.bootstrap_servers}


def confluent() -> Any:
    """The client library. Raise `library-missing` if it is not installed."""
    # The package does not import this module, and `create_client` reads it as an attribute of the package.
    library("confluent_kafka.admin", "kafka")
    return library("confluent_kafka", "kafka")


def create_client(kind: str, settings: Mapping[str, Any], failures: "Failures") -> Any:
    """Create a client of this kind: `Consumer`, `Producer` or `AdminClient`. Raise kafka-refused for wrong settings."""
    clients = confluent()
    maker = clients.admin.AdminClient if kind == "AdminClient" else getattr(clients, kind)
    try:
        return maker({**settings, "error_cb": failures.note}, logger=_quiet)
    except clients.KafkaException as wrong:
        problem = f"the client library refuses its settings: {text_of(wrong.args[0])}"
        raise kafka_refused(problem, "correct that setting in the property `settings`") from wrong


class Failures:
    """The errors that a client reported since it last worked."""

    def __init__(self) -> None:
        self.last: str | None = None
        self.refused: str | None = None
        self.are_total = False
        """Whether no broker can be reached, or the cluster refuses the client."""

    def note(self, error: Any) -> None:
        """Record an error. The client library calls it from the thread that polls."""
        is_total = error.name() == "_ALL_BROKERS_DOWN"
        if error.name() in _REFUSED:
            self.refused = text_of(error)
        # That all brokers are away comes last, and the error before it has the reason.
        if self.last is None or not is_total:
            self.last = text_of(error)
        self.are_total = self.are_total or is_total or self.refused is not None

    def clear(self) -> None:
        """Forget the errors: the client works again."""
        self.last, self.refused, self.are_total = None, None, False

    def check(self, address: str) -> None:
        """Raise `kafka-refused` if the cluster refused the client."""
        if self.refused is not None:
            raise kafka_refused(f"Kafka at {address} refuses the client: {self.refused}")


def text_of(error: Any) -> str:
    """An error of the client library as text."""
    return f"{error.str()} ({error.name()})"
