"""Programs that tests run on a terminal."""

import os
import pty
import subprocess

from tests.patience import within


def on_terminal(command, folder, environment, *, stdout=None):
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
