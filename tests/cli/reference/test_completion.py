"""Completion in a real bash on a terminal, with the script that `dagkit completion` prints."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dagkit.ledger import Ledger
from tests.patience import within

pytestmark = pytest.mark.slow

_SECONDS = within(60)
_TO_START, _TO_END = b"\x01", b"\x05"
"""The keys for the start and the end of the line."""


class Shell:
    """An interactive bash with the completion of dagkit."""

    def __init__(self, terminal):
        self._terminal = terminal
        self._printed = b""
        for line in ("bind 'set bell-style none' 'set enable-bracketed-paste off'", 'eval "$(dagkit completion bash)"'):
            os.write(terminal, line.encode() + b"\n")

    def completed(self, begun):
        """The line after the Tab key."""
        # the quotes within the words keep them out of the echo of what is typed
        os.write(self._terminal, begun.encode() + b"\t" + _TO_START + b"echo 'beg''in' " + _TO_END + b" 'en''d'\n")
        until = time.monotonic() + _SECONDS
        while b" end\r\n" not in self._printed:
            assert select.select([self._terminal], [], [], max(0.0, until - time.monotonic()))[0], self._printed
            self._printed += os.read(self._terminal, 65536)
        shown, _, self._printed = self._printed.partition(b" end\r\n")
        return shown.rpartition(b"begin ")[2].decode()


@pytest.fixture
def shell(folder):
    """A bash in the folder; the command is that of the Python that runs the tests."""
    bash = shutil.which("bash")
    assert bash is not None, "the tests need bash"
    ours, theirs = pty.openpty()
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": search, "HOME": str(folder), "TERM": "dumb", "PS1": "", "HISTFILE": ""}
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    command = [bash, "--norc", "--noprofile", "-i"]  # a shell without files of the user
    with subprocess.Popen(command, cwd=folder, env=own, start_new_session=True, **streams) as process:  # noqa: S603
        os.close(theirs)
        try:
            yield Shell(ours)
        finally:
            process.kill()
            os.close(ours)


COMPLETED = {
    "valid": "validate",
    "launch --metrics-p": "launch --metrics-port",
    "ledger veri": "ledger verify",
    "launch --log js": "launch --log json",
    "status Line": "status .dagkit/LineFilter",
    "status ": "status .dagkit/LineFilter",
    "items .dagkit/L": "items .dagkit/LineFilter",
    "launch wor": "launch word_count.py",
    "status wor": "status word_count.py",
}


def test_commands_options_launched_applications_and_files_are_completed(shell, folder, write):
    Ledger.create(folder / ".dagkit" / "LineFilter")
    (folder / ".dagkit" / "LineNothing").mkdir()
    write("word_count.py", "")
    assert {begun: shell.completed(f"dagkit {begun}").removeprefix("dagkit ") for begun in COMPLETED} == COMPLETED
