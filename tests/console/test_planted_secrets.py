"""Secrets that are planted in an application are nowhere afterwards.

They are not in its folder, its output, what commands print, what the console answers, or the list of processes.
"""

import os
import sys
from pathlib import Path

import pytest

from tests.console.conftest import Served
from tests.processes import run_program

ROOT = Path(__file__).parents[2]
PLANTED = ("planted-in-the-environment", "planted-in-a-file", "planted-in-a-property-file")

APP = """
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
    logins = State[dict[str, int]](dict)

    def process(self, item: str) -> None:
        secrets = [each.get_secret_value() for each in (self.user, self.password, self.token)]
        assert all(each.startswith("planted-") for each in secrets)
        self.logins[item] = len(secrets)
        shown = [path for path in Path("/proc").glob("[0-9]*/cmdline") if self._holds_any(path, secrets)]
        self.output.emit(f"{item}: in the command lines of {len(shown)} processes")

    def _holds_any(self, path: Path, secrets: list[str]) -> bool:
        try:
            content = path.read_bytes()
        except OSError:
            return False
        return any(each.encode() in content for each in secrets)

class App(StreamingApplication):
    def populate_dag(self, dag, conf):
        dag.add_operator("Items", Items(items=("a", "b"))) >> dag.add_operator("Login", Login(
            user=SecretStr(""), password=SecretStr(""), token=SecretStr("")
        )) >> dag.add_operator("Writer", PartWriter(file_path="out"))
"""
PROPERTIES = """
dt.operator.Login.prop.user = ${env:PLANTED}
dt.operator.Login.prop.password = ${file:planted.txt}
dt.operator.Login.prop.token = planted-in-a-property-file
"""
ON_PLACE = ("items", "ledger show", "ledger verify", "logs", "scale explain", "status", "work ls")
COMMANDS = [f"{verb} keeping.py -c keeping.properties" for verb in ("config", "explain", "graph", "plan", "validate")]
COMMANDS += [f"{verb} app" for verb in ON_PLACE]
ANSWERS = "overview windows windows/1 decisions splits splits/sums items items/sums given-up"
ANSWERS += " series work files values values?defaults graph graph.svg"


@pytest.fixture(autouse=True)
def _application(tmp_path):
    for name, text in {"keeping.py": APP, "keeping.properties": PROPERTIES, "planted.txt": PLANTED[1]}.items():
        (tmp_path / name).write_text(text)


def run(folder, command):
    """What a command prints."""
    own = {**os.environ, "PLANTED": PLANTED[0], "PYTHONPATH": str(ROOT)}
    done = run_program([sys.executable, "-m", "dagkit.cli", *command.split()], cwd=folder, env=own)
    return done.stdout + done.stderr


LAUNCH = "launch keeping.py -c keeping.properties --once --reference --path"


def secrets_in(content):
    text = content if isinstance(content, bytes) else content.encode()
    return [secret for secret in PLANTED if secret.encode() in text]


@pytest.mark.trial
@pytest.mark.slow
def test_planted_secrets_are_nowhere(tmp_path, serve):
    found = {command: secrets_in(run(tmp_path, command)) for command in (f"{LAUNCH} app", *COMMANDS)}
    for place in ("app", "out"):
        for path in (tmp_path / place).rglob("*"):
            found[str(path)] = secrets_in(path.read_bytes()) if path.is_file() else []
    with serve(tmp_path / "app") as url:
        console = Served(url)
        answers = {name: console.request(f"/api/v1/{name}") for name in ANSWERS.split()}
    assert {name: answer.status for name, answer in answers.items() if answer.status != 200} == {}
    found |= {name: secrets_in(answer.body) for name, answer in answers.items()}
    assert {place: secrets for place, secrets in found.items() if secrets} == {}
    lines = sorted(line for path in (tmp_path / "out").rglob("part-*") for line in path.read_text().splitlines())
    assert lines == [f"{item}: in the command lines of 0 processes" for item in "ab"]


@pytest.mark.slow
def test_what_a_launch_makes_is_writable_by_its_user_alone(tmp_path):
    """Under a usual umask; a stricter one is respected."""
    for mask in (0o022, 0o077):
        app = tmp_path / f"app-{mask:o}"
        before = os.umask(mask)
        try:
            run(tmp_path, f"{LAUNCH} {app}")
        finally:
            os.umask(before)
        assert [path for path in (app, *app.rglob("*")) if path.lstat().st_mode & mask] == []
