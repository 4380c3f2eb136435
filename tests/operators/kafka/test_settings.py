"""Settings of the client are checked when the application is compiled, and shown unless they are secret."""

import pytest

from dagkit import Config, Dag
from dagkit.api.configuration import Entry, Origin, Source
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from dagkit_operators import KafkaReader, KafkaSplitter
from dagkit_operators.kafka.topics import Topics


def compiled(settings):
    """A reader with these settings, which a file sets."""

    def draw(dag: Dag, conf: Config) -> None:
        split = dag.add_operator("split", KafkaSplitter(bootstrap_servers="127.0.0.1:1", topics=["topic"]))
        split >> dag.add_operator("read", KafkaReader(bootstrap_servers="127.0.0.1:1"))

    keys = {f"dt.operator.read.prop.settings({name})": value for name, value in settings.items()}
    entries = [Entry(key, value, Origin(Source.FILE, None, key)) for key, value in keys.items()]
    return compile_application(draw, Config(entries))


def test_a_misspelt_setting_is_refused_with_the_name_that_is_meant():
    settings = {"security.protocol": "SASL_SSL", "sasl.password": "hunter2", "fetch.max.byte": "100"}
    with pytest.raises(ApplicationFaults) as raised:
        compiled(settings)
    (fault,) = raised.value.diagnostics
    assert fault.code == "property-invalid"
    assert fault.problem == (
        "read is wrong: the client library has no setting fetch.max.byte; did you mean 'fetch.max.bytes'?"
    )
    assert fault.help == "fix the value of dt.operator.read.prop.settings(fetch.max.byte)"


def test_only_settings_that_are_secret_are_hidden():
    settings = {"security.protocol": "SSL", "client.id": "7", "sasl.password": "x", "ssl.key.pem": "y"}
    secrets = compiled(settings).secrets
    assert {name: secrets[f"dt.operator.read.prop.settings({name})"] for name in settings} == {
        "security.protocol": False,
        "client.id": False,
        "sasl.password": True,
        "ssl.key.pem": True,
    }


def test_asking_why_a_topic_is_missing_does_not_create_it():
    cluster = Topics({"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 1})
    assert (cluster.refusal("absent"), cluster.partitions()) == (None, {})
