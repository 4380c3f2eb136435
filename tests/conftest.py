"""What all tests share: how long hypothesis searches, the archive of Java's classes, and the services."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from dagkit.api import outage
from dagkit.ground.urls import resolved

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A loaded machine is no fault of the code, so no example has a deadline. The gate draws the same examples each time: a
# change is not kept out by an example that it did not cause. It prints the first one that fails as it is, because
# searching for a smaller one takes longer than a test may. Trials draw others, and more, and search.
settings.register_profile(
    "gate",
    deadline=None,
    derandomize=True,
    max_examples=25,
    print_blob=True,
    phases=[Phase.explicit, Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("trials", settings.get_profile("gate"), derandomize=False, max_examples=200, phases=[*Phase])
settings.load_profile("gate")

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


@pytest.fixture(scope="session")
def spark():
    """A local session with two cores. All tests of a process share it, and launches with `--cores 2` use it, too."""
    from dagkit.backends.spark import local_session  # noqa: PLC0415 - only tests with Spark need it

    session = local_session(2)
    _shared.append(session)
    yield session
    _shared.clear()
    session.stop()


_shared: list[Any] = []
"""The session of this process."""


@pytest.fixture(autouse=True)
def _shared_session_runs_on():
    """A test that stops the shared session would make others fail, much later."""
    yield
    if _shared and _shared[0].sparkContext._jsc is None:
        _shared.clear()
        pytest.fail("it has stopped the Spark that all tests of a process share")


@pytest.fixture(scope="session")
def connect_url():
    """The URL of a Spark Connect server, which runs in a process of its own."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    from tests.services.connect import ConnectServer  # noqa: PLC0415 - only tests with this server need it

    with ConnectServer() as server:
        yield server.url


@pytest.fixture(scope="session")
def connected(connect_url):
    """A session on the Connect server."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession  # noqa: PLC0415 - needs grpcio

    session: Any = ConnectSession(connection=connect_url)
    yield session
    session.stop()


@pytest.fixture(params=["classic", pytest.param("connect", marks=pytest.mark.trial)])
def session(request):
    """Either kind of session. A test of the gate that needs both asks for them: see `tests.backends.places`."""
    chosen: SparkSession = request.getfixturevalue("spark" if request.param == "classic" else "connected")
    return chosen


@pytest.fixture(autouse=True)
def _no_outages_of_earlier_tests():
    """An outage is shown as long as what waits lives, and the frames of a failed launch may keep it."""
    outage._outages.clear()


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
    from tests.services.scripted import Azurite  # noqa: PLC0415 - only tests with this server need it

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
    from tests.services.scripted import Hdfs  # noqa: PLC0415 - only tests with this server need it

    with Hdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server.url


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """A real Kafka broker. All tests of a process share it, so none may stop it."""
    pytest.importorskip("confluent_kafka", reason="run: pip install 'dagkit[kafka]'")
    from tests.services.broker import running  # noqa: PLC0415 - only tests with this server need it

    with running(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory):
    """A real RabbitMQ. All tests of a process share it, so none may stop it."""
    pytest.importorskip("kombu", reason="run: pip install 'dagkit[queues]'")
    from tests.services.rabbitmq import RabbitMQ  # noqa: PLC0415 - only tests with this server need it

    with RabbitMQ(tmp_path_factory.mktemp("rabbitmq")) as broker:
        yield broker


@pytest.fixture(scope="session")
def redis(tmp_path_factory):
    """A real Redis. All tests of a process share it."""
    pytest.importorskip("redis", reason="run: pip install redis")
    from tests.services.redis import Redis  # noqa: PLC0415 - only tests with this server need it

    with Redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL server. All tests of a process share it; one that kills it starts it again."""
    from tests.services import postgres as postgres_server  # noqa: PLC0415 - only tests with this server need it

    with postgres_server.running() as server:
        yield server
