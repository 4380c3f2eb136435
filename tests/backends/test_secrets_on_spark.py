"""Secrets that are planted in an application on Spark are nowhere afterwards, also where Spark writes and answers.

Not in the application's folder and output, in what a launch prints, in Spark's event log, in its page and the answers
of its interface, in what its processes write, or in the command line of any process.
"""

import base64
import json
import os
import shlex
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.cluster.standalone import WITHIN_SECONDS, Spoken
from tests.cluster.test_connect import kill
from tests.java import connect_server
from tests.patience import within

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.trial,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux shows its processes as files"),
]
PLANTED = ("planted-in-the-environment", "planted-in-a-file", "planted-in-a-property-file", "planted-in-a-url")
APP = """
import os
from pathlib import Path

from pydantic import SecretStr

from dagkit import *
from dagkit_operators import Items, PartWriter


class Login(Operator):
    input = InputPort[str]()
    output = OutputPort[str]()
    user: SecretStr
    password: SecretStr
    token: SecretStr
    url: SecretStr
    logins = State[dict[str, int]](dict)

    def process(self, item: str) -> None:
        secrets = [each.get_secret_value() for each in (self.user, self.password, self.token, self.url)]
        assert all("planted-" in each for each in secrets)
        self.logins[item] = len(secrets)
        self.output.emit(item)
        Path("HOME", "reached").touch()
        with Path("HOME", "go").open() as go:  # a pipe: the test looks at the processes of Spark meanwhile
            go.read()


class App(StreamingApplication):
    def populate_dag(self, dag, conf):
        dag.add_operator("Items", Items(items=("a",))) >> dag.add_operator("Login", Login(
            user=SecretStr(""), password=SecretStr(""), token=SecretStr(""), url=SecretStr("")
        )) >> dag.add_operator("Writer", PartWriter(file_path="HOME/out"))
"""
PROPERTIES = """
dt.operator.Login.prop.user = ${env:PLANTED}
dt.operator.Login.prop.password = ${file:planted.txt}
dt.operator.Login.prop.token = planted-in-a-property-file
dt.operator.Login.prop.url = amqp://user:planted-in-a-url@host/queue
"""
PAGES = "environment jobs stages executors SQL api/v1/applications"
OF_THE_APPLICATION = "environment jobs stages allexecutors sql"


def forms(secret: str) -> Iterator[bytes]:
    """A secret as it is, and as base64 shows it behind any other bytes."""
    yield secret.encode()
    for before in range(3):
        shown = base64.b64encode(b"x" * before + secret.encode())
        yield shown[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6]  # without what depends on bytes around it


FORMS = {secret: [*forms(secret)] for secret in PLANTED}


def secrets_in(content: bytes) -> list[str]:
    return [secret for secret, shown in FORMS.items() if any(form in content for form in shown)]


def content_of(path: Path) -> bytes:
    """The content of a file; nothing if it is a pipe, or was deleted meanwhile."""
    with suppress(OSError):
        return path.read_bytes() if path.is_file() else b""
    return b""


def answer(url: str) -> bytes:
    with urllib.request.urlopen(url) as response:  # noqa: S310 - Spark's own page
        return bytes(response.read())


def settings_in(folder: Path, ui: bool) -> dict[str, str]:
    """The variable by which Spark writes its event log, and its local files, below a folder."""
    for name in ("events", "conf", "local"):
        (folder / name).mkdir()
    lines = {
        "spark.ui.enabled": str(ui).lower(),
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{folder}/events",
        "spark.local.dir": f"{folder}/local",
    }
    (folder / "conf" / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
    return {"SPARK_CONF_DIR": str(folder / "conf"), "PYTHONPATH": os.pathsep.join(sys.path)}


def launched(folder: Path, master: str, environment: dict[str, str]) -> Spoken:
    """The launch of the application. A worker waits until the pipe `go` is closed."""
    (folder / "keeping.py").write_text(APP.replace("HOME", str(folder)))
    (folder / "keeping.properties").write_text(PROPERTIES)
    (folder / "planted.txt").write_text(PLANTED[1])
    os.mkfifo(folder / "go")
    words = ["launch", "keeping.py", "-c", "keeping.properties", "--once", "--master", master, "--path", "app"]
    ui = ["--spark", "spark.ui.enabled=true"] if master.startswith("local") else []
    at_home = f"cd {shlex.quote(str(folder))} && exec " + shlex.join([sys.executable, "-m", "dagkit.cli", *words, *ui])
    return Spoken(["sh", "-c", at_home], {**environment, "PLANTED": PLANTED[0]})


def await_worker(folder: Path, launch: Spoken) -> None:
    until = time.monotonic() + WITHIN_SECONDS
    while not (folder / "reached").exists():
        assert launch.process.poll() is None, "".join(launch.lines[-40:])
        assert time.monotonic() < until, "".join(launch.lines[-40:])
        time.sleep(0.05)


def places(folder: Path, launch: Spoken, server: Spoken | None) -> Iterator[tuple[str, bytes]]:
    """Everything that can be read while a worker has the secrets."""
    for process in Path("/proc").glob("[0-9]*"):
        yield str(process), content_of(process / "cmdline")
    for name in ("app", "out", "events", "local"):
        for path in (folder / name).rglob("*"):
            yield str(path), content_of(path)
    yield "what the launch prints", "".join(launch.lines).encode()
    if server is not None:
        yield "what the server prints", "".join(server.lines).encode()


def pages(folder: Path) -> Iterator[tuple[str, bytes]]:
    page = json.loads((folder / "app" / "status.json").read_text())["spark_page"]
    (application,) = json.loads(answer(f"{page}/api/v1/applications"))
    for name in PAGES.split():
        yield f"page {name}", answer(f"{page}/{name}")
    for name in OF_THE_APPLICATION.split():
        yield f"answer {name}", answer(f"{page}/api/v1/applications/{application['id']}/{name}")


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_planted_secrets_are_nowhere_on_spark(kind, tmp_path):
    environment = settings_in(tmp_path, ui=kind == "classic")
    server, master = None, "local[1]"
    with ExitStack() as started:
        if kind == "connect":
            pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
            server = Spoken(connect_server(), environment)
            started.callback(kill, server)
            master = f"sc://127.0.0.1:{server.until(r'^PORT ([0-9]+)$')[1]}"
        launch = launched(tmp_path, master, environment)
        started.callback(launch.kill)
        await_worker(tmp_path, launch)
        seen = [*places(tmp_path, launch, server), *(pages(tmp_path) if kind == "classic" else ())]
        (tmp_path / "go").write_bytes(b"")
        assert launch.process.wait(within(120)) == 0, "".join(launch.lines[-40:])
        seen += places(tmp_path, launch, server)
    assert {place: secrets for place, content in seen if (secrets := secrets_in(content))} == {}
    assert any(content for place, content in seen if "/events/" in place), "Spark wrote its event log"
