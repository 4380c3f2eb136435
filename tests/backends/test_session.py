"""The session that dagkit starts itself."""

import re
import socket
import sys

import pytest

from dagkit.backends.spark import session_at
from dagkit.errors import RunFailure
from dagkit.ground.clock import PATIENCE
from dagkit.runs.machine import Machine, StartingSession
from tests.processes import run_program

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_its_java_compiles_once_and_leaves_the_processor_to_the_workers(spark):
    java = spark.sparkContext._jvm.java.lang.management.ManagementFactory
    assert "-XX:TieredStopAtLevel=1" in list(java.getRuntimeMXBean().getInputArguments())


def test_what_listens_and_is_no_connect_server_is_not_waited_for(monkeypatch):
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("dagkit.backends.spark.session.session.CONNECTED_WITHIN_SECONDS", 0.2)
    monkeypatch.setenv(PATIENCE, "1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"sc://127.0.0.1:{server.getsockname()[1]}"
        message = f"no Spark Connect server answers at {url} within 0.2 s [spark-unavailable]\n  help: "
        with pytest.raises(RunFailure, match=f"^{re.escape(message)}"):
            session_at(url)


def test_calls_to_a_connect_server_that_is_away_are_retried_for_some_seconds_and_later_ones_are_not():
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    from dagkit.backends.spark.failures.connect_retries import Retries  # noqa: PLC0415 - needs grpcio

    policy = Retries()
    first, other = policy.to_state(), policy.to_state()
    pauses = [*iter(first.next_attempt, None)]
    assert pauses[0] == 50
    assert 10_000 < sum(pauses) < 25_000
    assert (policy.has_given_up, other.next_attempt(), policy.to_state().next_attempt()) == (True, None, None)


def test_only_sessions_that_dagkit_opens_at_a_connect_server_are_replaced(spark):
    opened = StartingSession()
    for machine, server in (
        (Machine(master="sc://host:443/;use_ssl=true;token=secret", starting=opened), "host:443"),
        (Machine(master="sc://[::1]:15002", starting=opened), "[::1]:15002"),
        (Machine("reference"), None),
        (Machine(master="local[2]", starting=opened), None),
        (Machine(starting=opened), None),
        (Machine(spark=spark), None),
        (Machine(spark=spark, master="sc://host:443"), None),
    ):
        assert machine.server == server


def test_a_launch_uses_a_session_that_runs_and_leaves_it(spark):
    with Machine(cores=2).with_spark_starting() as machine, machine.session() as session:
        assert machine.starting is None
        assert session.sparkContext is spark.sparkContext
    assert spark.range(3).count() == 3


def test_yarn_needs_to_be_configured(monkeypatch):
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RunFailure, match=r"^Spark does not know where YARN is .*\n  help: set HADOOP_CONF_DIR"):
        session_at("yarn")


IMPORTING = """
import sys
import threading

import pyarrow

import dagkit.launching


def meet(event, arguments):
    if event == "import" and arguments[0] == "pyspark.conf" and not other.ident:  # PySpark itself imports it first
        other.start()
        met.wait(1)
    elif event == "import" and arguments[0] == "pyspark.sql.conf" and threading.current_thread() is other:
        met.set()


def load():
    from dagkit.backends.spark import SparkBackend


met, other = threading.Event(), threading.Thread(target=load)
threading.excepthook = lambda failed: print(failed.exc_value)
sys.addaudithook(meet)
from dagkit.backends.spark import session_at
other.join()
"""


def test_two_threads_may_import_the_backend_at_once():
    done = run_program([sys.executable, "-c", IMPORTING], check=False, seconds=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


KINDS = """
import sys
import numpy
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter
from dagkit.backends.spark.session.gateway import find_numpy_without_pandas

find_numpy_without_pandas()
values = numpy.float64(1), numpy.zeros(1), numpy.zeros((1, 1)), 1.0, [1.0], None
print([kind().can_convert(value) for kind in (NumpyScalarConverter, NumpyArrayConverter) for value in values])
print("pandas" in sys.modules)
"""


@pytest.mark.slow
def test_values_of_numpy_are_found_without_pandas():
    ran = run_program([sys.executable, "-c", KINDS], seconds=120)
    scalars, arrays = [True, *[False] * 5], [False, True, *[False] * 4]
    assert ran.stdout.splitlines() == [str(scalars + arrays), "False"]
