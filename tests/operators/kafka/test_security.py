"""TLS and passwords on a real broker: what is refused, and that no secret is shown."""

import os
import sys
from pathlib import Path

import pytest

from dagkit.compiler import compile_application
from dagkit.plan import write_plan
from dagkit_operators import Items, KafkaWriter
from tests.engine.cast import Desk, chain
from tests.operators.kafka.topics_cast import LOGIN, copied
from tests.operators.ways import refused
from tests.processes import run_program
from tests.services.broker import running
from tests.services.certificates import DAY, Authority

pytestmark = pytest.mark.trial

ROOT = Path(__file__).parents[3]
SECRET = "planted-secret"  # noqa: S105 - no real one
TLS = {"security.protocol": "SSL"}
TLS_LOGIN = {"security.protocol": "SASL_SSL", **LOGIN}


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    """A broker with a certificate, and beside that the certificate of its authority and that of another one."""
    folder, authority = tmp_path_factory.mktemp("certified"), Authority()
    authority.write(folder / "trusted.pem")
    authority.issue(folder / "server.pem")
    Authority().write(folder / "other.pem")
    with running(folder) as broker:
        yield broker


def copy(broker, home, settings, trusted):
    """Copy ten messages to a topic with these settings of clients, and return how many have arrived."""
    source, target = broker.topic(), broker.topic()
    broker.produce(source, range(10))
    address = broker.tls_login_address if "sasl.password" in settings else broker.tls_address
    at = {"bootstrap_servers": address, "settings": {**settings, "ssl.ca.location": str(broker.folder / trusted)}}
    Desk(home, copied(broker, source, target, at=at)).run()
    return len(broker.committed(target)[0])


@pytest.mark.parametrize("settings", [TLS, TLS_LOGIN], ids=["a certificate", "a certificate and a password"])
def test_messages_are_copied_over_tls(certified, tmp_path, settings):
    assert copy(certified, tmp_path, settings, "trusted.pem") == 10


UNVERIFIED = "broker certificate could not be verified, verify that ssl.ca.location is correctly configured"


@pytest.mark.parametrize(
    ("settings", "trusted", "problem"),
    [
        (TLS, "other.pem", UNVERIFIED),
        (TLS, "absent.pem", "ssl.ca.location failed"),
        ({**TLS_LOGIN, "sasl.password": SECRET}, "trusted.pem", "Authentication failed"),
    ],
    ids=["an authority that is not trusted", "a file that does not exist", "a wrong password, which is not shown"],
)
def test_a_refusal_ends_the_launch_with_one_line(certified, tmp_path, settings, trusted, problem):
    with refused("kafka-refused", problem) as raised:
        copy(certified, tmp_path, settings, trusted)
    assert "\n" not in raised.value.problem
    assert SECRET not in raised.value.problem


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


def with_secrets(broker, folder, password):
    """Launch an application whose secrets come from the environment; return all that it printed."""
    source, target = broker.topic(), broker.topic()
    broker.produce(source, range(10))
    text = APPLICATION.replace("ADDRESS", broker.tls_login_address).replace("SOURCE", source).replace("TARGET", target)
    (folder / "copies.py").write_text(text)
    trusted = {"ssl.ca.location": str(broker.folder / "trusted.pem")}
    settings = {**TLS_LOGIN, **trusted, "sasl.password": "${env:KAFKA_PASSWORD}"}
    lines = [f"dt.operator.*.prop.settings({name})={value}\n" for name, value in settings.items()]
    (folder / "copies.properties").write_text("".join(lines))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KAFKA_PASSWORD": password}
    given = ["copies.py", "-c", "copies.properties"]
    printed = []
    for command in (
        ["plan", *given],
        ["config", *given],
        ["launch", "--once", "--reference", "-v", *given, "--path", "app"],
        ["ledger", "show", "app"],
    ):
        program = [sys.executable, "-m", "dagkit.cli", *command]
        done = run_program(program, cwd=folder, env=environment, check=False, seconds=600)
        printed.append(done.stdout + done.stderr)
    return "".join(printed)


@pytest.mark.parametrize("password", ["alice-secret", SECRET], ids=["accepted", "refused"])
def test_a_password_is_in_no_file_no_output_and_no_command(certified, tmp_path, password):
    printed = with_secrets(certified, tmp_path, password)
    assert ("[kafka-refused]" in printed) == (password == SECRET)
    assert password not in printed
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert (tmp_path / "commands" in files) == (password != SECRET)
    assert len(files) > 3
    assert [path for path in files if password.encode() in path.read_bytes()] == []


def test_a_certificate_that_has_expired_ends_the_launch(certified, tmp_path):
    """The last test of this file: it leaves the broker with this certificate."""
    folder = certified.folder
    certified.stop()
    authority = Authority()
    authority.write(folder / "trusted.pem")
    authority.issue(folder / "server.pem", valid_for=-DAY)
    certified.start()
    with refused("kafka-refused", "certificate verify failed"):
        copy(certified, tmp_path, TLS, "trusted.pem")


@pytest.mark.parametrize("name", ["sasl.password", "ssl.key.password", "ssl.key.pem", "sasl.oauthbearer.client.secret"])
def test_a_plan_shows_no_secret_that_is_set_in_code(name):
    writer = KafkaWriter(topic="topic", bootstrap_servers="127.0.0.1:1", settings={name: SECRET})
    plan = write_plan(compile_application(chain(items=Items(items=["1"]), writer=writer)).plan)
    assert name in plan
    assert SECRET not in plan
