"""Programs that tests run on a terminal."""

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.patience import within


def on_terminal(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], *, stdout: int | None = None
) -> bytes:
    """What a program shows on a terminal, which also gets its results unless `stdout` is another file. It succeeds."""
    ours, theirs = pty.openpty()
    program = subprocess.Popen(  # noqa: S603 - a command of a test
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs if stdout is None else stdout,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # Linux reports so that the other end is closed
        pass
    os.close(ours)
    assert program.wait(within(50)) == 0
    return shown
