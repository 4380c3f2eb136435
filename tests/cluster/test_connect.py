"""A Spark Connect server that starts again while an application runs."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.standalone import Spoken
from tests.cluster.test_clusters import DISTURBED, Run
from tests.java import connect_server
from tests.processes import below

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux shows its processes as files"),
]
Serve = Callable[..., tuple[Spoken, str]]


@pytest.fixture
def serve() -> Iterator[Serve]:
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


def test_a_launch_whose_server_starts_again_ends_and_the_next_one_resumes(
    serve: Serve, tmp_path: Path, text: Path
) -> None:
    server, port = serve()
    run = Run("line_filter", text, tmp_path)
    first = run.launched(f"sc://127.0.0.1:{port}")
    first.until(f"^started {DISTURBED}$")
    kill(server)
    serve(port)
    first.send("continue")
    first.until(r"SessionEnded: .*the Spark Connect server has started again .* \[spark-ended\]$")
    first.until("help: the ledger is intact; launch again to resume")
    first.process.wait()
    first.kill()
    second = run.launched(f"sc://127.0.0.1:{port}")
    second.send("continue")
    assert second.process.wait() == 0, "".join(second.lines[-40:])
    second.kill()
    run.check()
