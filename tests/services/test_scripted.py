"""Servers that do not start."""

from pathlib import Path

import pytest

from tests.services import scripted
from tests.services.scripted import ScriptedServer

pytestmark = pytest.mark.slow


def server(folder: Path, script: str) -> ScriptedServer:
    """A server that runs this script, whose first argument is `run`, and the second one the folder."""
    path = folder / "server.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)

    class Server(ScriptedServer):
        pass

    Server.script = path
    return Server(folder)


def test_a_server_that_is_never_ready_is_killed_and_its_log_is_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(scripted, "_STARTED_SECONDS", 0.05)
    hanging = server(tmp_path, 'echo "no disk" > "$2/broker.log"; while :; do sleep 0.05; done')
    with pytest.raises(AssertionError, match="not ready in time") as raised:
        hanging.start()
    assert "no disk" in str(raised.value)
    assert not hanging.is_running


TAKING = """
echo "$*" >> "$2/attempts"
if test "$(wc -l < "$2/attempts")" -lt 3; then echo "java.net.BindException: Address already in use" >&2; exit 1; fi
echo "READY 1234 $$"; cat > /dev/null
"""


def test_a_server_whose_port_is_taken_gets_others(tmp_path):
    with server(tmp_path, TAKING) as started:
        assert started.address == "127.0.0.1:1234"
    assert (tmp_path / "attempts").read_text() == f"run {tmp_path}\n" * 3


def test_a_server_that_ends_for_another_reason_is_not_tried_again(tmp_path):
    with pytest.raises(AssertionError, match="no memory"):
        server(tmp_path, 'echo x >> "$2/attempts"; echo "no memory" >&2; exit 1').start()
    assert (tmp_path / "attempts").read_text() == "x\n"
