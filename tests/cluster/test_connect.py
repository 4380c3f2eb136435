"""A Spark Connect server that ends, and starts again, while an application runs."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.cluster.standalone import Spoken
from tests.cluster.test_clusters import DISTURBED, Run, has_processes
from tests.java import connect_server
from tests.patience import within
from tests.processes import below

pytestmark = [pytest.mark.spark, pytest.mark.trial, has_processes]
Serve = Callable[..., tuple[Spoken, str]]


@pytest.fixture
def serve():
    """Starts a server at a port, or at a free one; gives the server and its port."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    with ExitStack() as started:

        def start(port: str | None = None) -> tuple[Spoken, str]:
            server = Spoken(connect_server(port), {"PYTHONPATH": os.pathsep.join(sys.path)})
            started.callback(kill, server)
            return server, server.until(r"^PORT (\d+)$")[1]

        yield start


def kill(server: Spoken) -> None:
    """Kill a server with its Java, unless that was done before."""
    if server.process.poll() is None:
        for each in below(server.process.pid):
            os.kill(each, signal.SIGKILL)
        server.kill()


def test_a_launch_resumes_when_its_server_starts_again_and_when_it_is_away_for_a_while(serve, tmp_path, text):
    server, port = serve()
    run = Run("line_filter", text, tmp_path)
    driver = run.launched(f"sc://127.0.0.1:{port}")
    driver.until(f"^started {DISTURBED}$")
    kill(server)
    server, _ = serve(port)
    driver.send("continue")
    driver.until("; the launch resumes from its ledger, in another session$")
    driver.until(f"^started {DISTURBED}$")
    kill(server)
    driver.send("continue")
    driver.until("the Spark Connect server does not answer; the launch resumes from its ledger, in another session$")
    driver.until(f"the Spark Connect server 127.0.0.1:{port} does not answer, and is tried again until it does: ")
    serve(port)
    driver.until("answers again, after ")
    driver.send("continue")
    assert driver.process.wait(within(600)) == 0, "".join(driver.lines[-40:])
    driver.kill()
    run.check()
