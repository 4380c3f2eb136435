"""What all tests share: how hypothesis draws, and in which order they run."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from dagkit.urls import resolved
from tests.parallel import InOrder
from tests.services import postgres as postgres_server
from tests.services.azurite import Azurite
from tests.services.broker import running
from tests.services.hdfs import Hdfs
from tests.services.rabbitmq import RabbitMQ

# A loaded machine is no fault of the code: how long something takes is proven where it is measured.
settings.register_profile("dagkit", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
# `pytest --hypothesis-profile=thorough` looks longer.
settings.register_profile("thorough", settings.get_profile("dagkit"), max_examples=2000)
settings.load_profile("dagkit")

# With the archive of Java's classes that `make test` made, Spark starts in half the time. No launch of a test leaves a
# process that makes another one: the folder of the archive is read-only.
CACHE = Path(sys.prefix) / "cache"
os.environ["DAGKIT_CACHE"] = str(CACHE) if (CACHE / "java").is_dir() else ""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--trials", type=int, default=2, help="how often a test that kills servers and drivers kills one")


@pytest.fixture(scope="session")
def trials(pytestconfig):
    """How often a test kills servers or drivers; on Spark, a tenth of that."""
    return pytestconfig.getoption("trials")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `trial` once for each, one that takes `spark_trial` for a tenth: the number is the seed."""
    trials = metafunc.config.getoption("trials")
    for name, count in (("trial", trials), ("spark_trial", -(-trials // 10))):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, range(count))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests run after all others, and those on Spark last: what takes no time proves or fails first."""
    items.sort(key=lambda item: sum(item.get_closest_marker(name) is not None for name in ("slow", "spark")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> InOrder:
    return InOrder(config, log)


@pytest.fixture(scope="session")
def bucket(tmp_path_factory):
    """An S3 server that speaks HTTP, and a bucket in it."""
    boto3 = pytest.importorskip("boto3")
    moto = pytest.importorskip("moto.server")

    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="ledgers")
    yield endpoint
    server.stop()


@pytest.fixture(scope="session")
def azurite(tmp_path_factory):
    """A blob server with Azure's interface, over HTTP."""
    with Azurite(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture
def container(azurite, monkeypatch):
    """The URL of a container of Azure. Its credentials are in the environment."""
    for name, value in azurite.environment.items():
        monkeypatch.setenv(name, value)
    resolved("az://lake").filesystem.create_dir("lake")
    return "az://lake"


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory):
    """The URL of a real HDFS, through WebHDFS."""
    with Hdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server.url


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """A real Kafka broker. All tests of a process share it, so none may stop it."""
    with running(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory):
    """A real RabbitMQ. All tests of a process share it, so none may stop it."""
    with RabbitMQ(tmp_path_factory.mktemp("rabbitmq")) as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL server. All tests of a process share it; one that kills it starts it again."""
    with postgres_server.running() as server:
        yield server
