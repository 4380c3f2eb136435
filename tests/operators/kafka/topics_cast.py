"""Applications that copy or collect the messages of topics."""

from dagkit_operators import KafkaReader, KafkaSplitter, KafkaWriter
from tests.engine.cast import Collect, Desk, Draw, arrived, chain
from tests.services.broker import Broker

LOGIN = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "alice-secret"}


def login(broker: Broker, **settings: str) -> dict:
    """The properties of an operator that gives a name and a password."""
    given = {"security.protocol": "SASL_PLAINTEXT", **LOGIN, **settings}
    return {"bootstrap_servers": broker.login_address, "settings": given}


def copied(broker: Broker, source: str, target: str, *, at=None, reader=(), **writer) -> Draw:
    at = at or {"bootstrap_servers": broker.address}
    split, read = KafkaSplitter(topics=[source], **at), KafkaReader(**at, **dict(reader))
    return chain(splitter=split, reader=read, writer=KafkaWriter(topic=target, **at, **writer))


def messages(broker: Broker, topic: str, home) -> list[str]:
    at = {"bootstrap_servers": broker.address}
    split, read = KafkaSplitter(topics=[topic], **at), KafkaReader(parse=repr, **at)
    return arrived(Desk(home, chain(splitter=split, reader=read, collect=Collect())).run())


def transact(broker: Broker, topic: str, value: bytes, *, commits: bool = True) -> None:
    producer = broker.producer(transactional_id=f"{topic}-{commits}")
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, value)
    producer.flush()
    (producer.commit_transaction if commits else producer.abort_transaction)()
