"""Spark sessions for all tests that need one: a classic one, and one behind a Spark Connect server."""

import subprocess
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from dagkit.backends.spark import local_session
from tests.java import connect_server


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with two cores."""
    session = local_session(2)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connected() -> Iterator[SparkSession]:
    """A session on a Connect server, which runs in a process of its own."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    from pyspark.sql.connect.session import SparkSession as ConnectSession  # noqa: PLC0415 - needs grpcio

    with subprocess.Popen(connect_server(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        assert server.stdout is not None
        port = next(line.split()[1] for line in server.stdout if line.startswith("PORT "))
        session = ConnectSession(connection=f"sc://127.0.0.1:{port}")
        yield session  # type: ignore[misc] # both kinds are one to those who use the DataFrame API alone
        session.stop()
        server.communicate()


@pytest.fixture(params=["classic", "connect"])
def session(request: pytest.FixtureRequest) -> SparkSession:
    """Either kind of session."""
    chosen: SparkSession = request.getfixturevalue("spark" if request.param == "classic" else "connected")
    return chosen
