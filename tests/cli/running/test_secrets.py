"""What `dagkit launch` prints holds no secret: as text, as a document, and as lines of JSON."""

import json

import pytest

APP = """
from pydantic import SecretStr

from dagkit import *
from dagkit.errors import InputUnreadable
from dagkit_operators import Items

class Refusing(Operator):
    input = InputPort[str]()
    password: SecretStr = SecretStr("hunter2")
    login: SecretStr = SecretStr("hunter2")

    def process(self, item: str) -> None:
        raise InputUnreadable(f"cannot read {item}", f"let {item} be read")

    def teardown(self) -> None:
        raise OSError("cannot log hunter2 out")

class App(StreamingApplication):
    def populate_dag(self, dag, conf):
        dag.add_operator("Items", Items(items=("ftp://hunter2@host",))) >> dag.add_operator("Refusing", Refusing())
"""

LAUNCH = ("launch", "refusing.py", "--once", "--reference")


@pytest.fixture(autouse=True)
def _application(write):
    write("refusing.py", APP)


def test_a_failed_launch_prints_no_secret_as_text_as_a_document_and_as_lines_of_a_log(dagkit):
    text, in_json, in_lines = (dagkit(*LAUNCH, *options) for options in ((), ("--json",), ("--log", "json")))
    for answer in (text, in_json, in_lines):
        printed = answer.out + answer.err
        assert (answer.code, "cannot read ftp://**********@host" in printed, "hunter2" in printed) == (5, True, False)
    assert in_json.document["problem"] == "Refusing cannot read ftp://**********@host"
    assert in_json.document["help"] == "let ftp://**********@host be read"
    lines = {line["event"]: line for line in map(json.loads, in_lines.err.splitlines())}
    assert "OSError: cannot log ********** out" in lines["logged"]["exception"]
    assert lines["stopped"]["help"] == in_json.document["help"]


def test_the_command_that_launches_it_again_is_in_the_status_without_secrets(dagkit, folder):
    (folder / "own.properties").write_text("dt.attr.APPLICATION_NAME = Own\n")
    secrets = ("-D", "dt.operator.Refusing.prop.login=hunter2", "-D", "dt.operator.Refusing.prop.password=hunter2")
    options = ("-c", "own.properties", *secrets, "-D", "dt.operator.Items.attr.MEMORY_MB=512", "--path", "my run")
    assert dagkit(*LAUNCH, *options, "--fresh").code == 5
    assert "hunter2" not in (folder / "my run" / "status.json").read_text()
    masked = " ".join(f"'{option}'" if "=" in option else option for option in secrets).replace("hunter2", "*" * 10)
    (command,) = [line for line in dagkit("status", "my run").out.splitlines() if line.startswith("to launch it again")]
    assert command == (
        f"to launch it again: cd {folder} && dagkit launch refusing.py {masked} "
        "-D dt.operator.Items.attr.MEMORY_MB=512 -c own.properties --reference --once --path 'my run'"
    )
