"""The application, with a broker in this process."""

import itertools
from pathlib import Path

import kombu
import pytest
from pydantic import SecretStr

from apps.message_ingest.app import MessageIngest
from dagkit.launching import Machine, launch

pytestmark = pytest.mark.slow  # a launch with an end waits a second for further messages
_numbers = itertools.count()


def ingest(messages):
    """Send messages and read what they name; return how many messages are left."""
    name = f"ingest-{next(_numbers)}"
    with kombu.Connection("memory://") as connection:
        queue = connection.SimpleQueue(name)
        for number, message in enumerate(messages):
            queue.put(message, headers={"id": str(number)})
        application = MessageIngest(url=SecretStr("memory://"), queue=name)
        launch(application, until="once", path="app", machine=Machine("reference"))
        return int(queue.qsize())


def test_files_are_read_and_messages_are_acknowledged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        Path(name).write_text(f"{name}\n")
    assert ingest([str(tmp_path / "one"), str(tmp_path / "two"), str(tmp_path / "three")]) == 0
    assert sorted(path.read_text() for path in Path("output").iterdir()) == ["one\n", "two\n"]
    (letter,) = Path("dead-letters").rglob("part-*")
    assert letter.read_text() == f"there is no such file: {tmp_path / 'three'}\n"
