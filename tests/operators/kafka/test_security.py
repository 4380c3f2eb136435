"""TLS and passwords on a real broker: what is refused, and that no secret is shown."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag
from dagkit.compiler import compile_application
from dagkit.engine.failures import OperatorFailed
from dagkit.plan import write_plan
from dagkit_operators import Items, KafkaReader, KafkaSplitter, KafkaWriter
from tests.engine.cast import Desk, Draw
from tests.processes import run_program
from tests.services.broker import Broker, running
from tests.services.certificates import DAY, Authority

pytestmark = pytest.mark.trial

ROOT = Path(__file__).parents[3]
LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "alice"}
SECRET = "planted-secret"  # noqa: S105 - no real one


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    """A broker with a certificate, and beside that the certificate of its authority and that of another one."""
    folder, authority = tmp_path_factory.mktemp("certified"), Authority()
    authority.write(folder / "trusted.pem")
    authority.issue(folder / "server.pem")
    Authority().write(folder / "other.pem")
    with running(folder) as broker:
        yield broker


def trusting(broker: Broker, name: str) -> dict[str, str]:
    """The setting of a client that trusts an authority."""
    return {"ssl.ca.location": str(broker.folder / name)}


def copied(broker: Broker, address: str, settings: Mapping[str, Any]) -> tuple[Draw, str]:
    """An application that copies ten messages to a topic, whose name is returned, too."""
    source, target = broker.topic(), broker.topic()
    broker.produce(source, range(10))

    def draw(dag: Dag, conf: object) -> None:
        at = {"bootstrap_servers": address, "settings": settings}
        splitter = dag.add_operator("splitter", KafkaSplitter(topics=[source], **at))
        reader = dag.add_operator("reader", KafkaReader(**at))
        splitter >> reader >> dag.add_operator("writer", KafkaWriter(topic=target, **at))

    return draw, target


def test_messages_are_copied_over_tls(certified, tmp_path):
    settings = {"security.protocol": "SSL", **trusting(certified, "trusted.pem")}
    draw, target = copied(certified, certified.tls_address, settings)
    Desk(tmp_path, draw).run()
    assert len(certified.committed(target)[0]) == 10


def test_messages_are_copied_over_tls_with_a_password(certified, tmp_path):
    settings = {**LOGIN, "sasl.password": "alice-secret", **trusting(certified, "trusted.pem")}
    draw, target = copied(certified, certified.tls_login_address, settings)
    Desk(tmp_path, draw).run()
    assert len(certified.committed(target)[0]) == 10


def refusal(broker: Broker, folder: Path, address: str, settings: Mapping[str, Any]) -> str:
    """The one line with which a launch ends because the cluster refuses its client."""
    draw, _ = copied(broker, address, settings)
    with pytest.raises(OperatorFailed) as raised:
        Desk(folder, draw).run()
    assert raised.value.code == "kafka-refused"
    assert "\n" not in raised.value.problem
    return raised.value.problem


def test_a_certificate_of_an_authority_that_is_not_trusted_ends_the_launch(certified, tmp_path):
    settings = {"security.protocol": "SSL", **trusting(certified, "other.pem")}
    problem = refusal(certified, tmp_path, certified.tls_address, settings)
    assert "broker certificate could not be verified, verify that ssl.ca.location is correctly configured" in problem


def test_a_wrong_password_over_tls_ends_the_launch_and_is_not_shown(certified, tmp_path):
    settings = {**LOGIN, "sasl.password": SECRET, **trusting(certified, "trusted.pem")}
    problem = refusal(certified, tmp_path, certified.tls_login_address, settings)
    assert "Authentication failed" in problem
    assert SECRET not in problem


def test_a_file_of_certificates_that_does_not_exist_ends_the_launch(certified, tmp_path):
    settings = {"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "absent.pem")}
    assert "ssl.ca.location failed" in refusal(certified, tmp_path, certified.tls_address, settings)


APPLICATION = """
import logging
from pathlib import Path

from dagkit import Config, Dag, StreamingApplication
from dagkit_operators import KafkaReader, KafkaSplitter, KafkaWriter

logging.basicConfig(level=logging.DEBUG)


def seen(message):
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    Path("commands").write_bytes(b"\\n".join(commands))
    return message


class Copy(StreamingApplication):
    def populate_dag(self, dag: Dag, conf: Config) -> None:
        split = dag.add_operator("Split", KafkaSplitter(bootstrap_servers="ADDRESS", topics=["SOURCE"]))
        read = dag.add_operator("Read", KafkaReader(bootstrap_servers="ADDRESS", parse=seen))
        write = dag.add_operator("Write", KafkaWriter(bootstrap_servers="ADDRESS", topic="TARGET"))
        split >> read >> write
"""


def with_secrets(broker: Broker, folder: Path, address: str, password: str) -> str:
    """Launch an application whose secrets come from the environment; return all that it printed."""
    source, target = broker.topic(), broker.topic()
    broker.produce(source, range(10))
    text = APPLICATION.replace("ADDRESS", address).replace("SOURCE", source).replace("TARGET", target)
    (folder / "copies.py").write_text(text)
    settings = {**LOGIN, **trusting(broker, "trusted.pem"), "sasl.password": "${env:KAFKA_PASSWORD}"}
    lines = [f"dt.operator.*.prop.settings({name})={value}" for name, value in settings.items()]
    (folder / "copies.properties").write_text("\n".join(lines) + "\n")
    printed = []
    for command in (["plan"], ["config"], ["launch", "--once", "--reference", "-v"], ["ledger", "show", "app"]):
        given = command if command[0] == "ledger" else [*command, "copies.py", "-c", "copies.properties"]
        done = run_program(
            [sys.executable, "-m", "dagkit.cli", *given, *(["--path", "app"] if command[0] == "launch" else [])],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "KAFKA_PASSWORD": password},
            check=False,
            seconds=600,
        )
        printed.append(done.stdout + done.stderr)
    return "".join(printed)


@pytest.mark.trial
@pytest.mark.parametrize("password", ["alice-secret", SECRET], ids=["accepted", "refused"])
def test_a_password_is_in_no_file_no_output_and_no_command(certified, tmp_path, password):
    printed = with_secrets(certified, tmp_path, certified.tls_login_address, password)
    assert ("[kafka-refused]" in printed) == (password == SECRET)
    assert password not in printed
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert (tmp_path / "commands" in files) == (password != SECRET)
    assert len(files) > 3
    assert [path for path in files if password.encode() in path.read_bytes()] == []


@pytest.mark.trial
def test_a_certificate_that_has_expired_ends_the_launch(certified, tmp_path):
    """The last test of this file: it leaves the broker with this certificate."""
    folder = certified.folder
    certified.stop()
    authority = Authority()
    authority.write(folder / "trusted.pem")
    authority.issue(folder / "server.pem", valid_for=-DAY)
    certified.start()
    settings = {"security.protocol": "SSL", **trusting(certified, "trusted.pem")}
    problem = refusal(certified, tmp_path, certified.tls_address, settings)
    assert "certificate verify failed" in problem


@pytest.mark.parametrize("name", ["sasl.password", "ssl.key.password", "ssl.key.pem", "sasl.oauthbearer.client.secret"])
def test_a_plan_shows_no_secret_that_is_set_in_code(name):
    def draw(dag: Dag, conf: object) -> None:
        writer = KafkaWriter(topic="topic", bootstrap_servers="127.0.0.1:1", settings={name: SECRET})
        dag.add_operator("items", Items(items=["1"])) >> dag.add_operator("writer", writer)

    plan = write_plan(compile_application(draw).plan)
    assert name in plan
    assert SECRET not in plan
