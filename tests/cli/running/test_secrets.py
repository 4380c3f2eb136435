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


@pytest.mark.parametrize("options", [(), ("--json",), ("--log", "json")])
def test_a_failed_launch_prints_no_secret(dagkit, options):
    answer = dagkit(*LAUNCH, *options)
    assert answer.code == 5
    assert "cannot read ftp://**********@host" in answer.out + answer.err
    assert "hunter2" not in answer.out + answer.err


def test_each_field_of_the_document_and_lines_of_the_log_are_masked(dagkit):
    document = dagkit(*LAUNCH, "--json").document
    assert document["problem"] == "Refusing cannot read ftp://**********@host"
    assert document["help"] == "let ftp://**********@host be read"
    lines = [json.loads(line) for line in dagkit(*LAUNCH, "--log", "json").err.splitlines()]
    (logged,), (stopped,) = ([line for line in lines if line["event"] == event] for event in ("logged", "stopped"))
    assert "OSError: cannot log ********** out" in logged["exception"]
    assert stopped["help"] == document["help"]
