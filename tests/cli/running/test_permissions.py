"""A launch without permission for a file or folder names it with a code; after permission is given, nothing is lost."""

import sys

import pytest

from tests.processes import run_program

APPLICATION = """
from dagkit import StreamingApplication
from dagkit_operators import FileSplitterInput, LineReader, PartWriter

class App(StreamingApplication):
    def populate_dag(self, dag, conf):
        found = dag.add_operator("Find", FileSplitterInput(scanner={"files": ["in"]}))
        found >> dag.add_operator("Read", LineReader()) >> dag.add_operator("Write", PartWriter(file_path="out"))
"""
OBEYING = """
import ctypes, os, sys
for capability in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, with which root needs no permission
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: programs that this process starts lack it
os.execv(sys.executable, [sys.executable, "-m", "dagkit.cli", *sys.argv[1:]])
"""


LAUNCH = ("launch", "app.py", "--reference", "--once", "-q")


@pytest.mark.gate(2)
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes single rights from root")
@pytest.mark.parametrize(
    ("place", "mode", "code"),
    [
        ("in/b.txt", 0o000, "input-unreadable"),
        ("in", 0o000, "input-unreadable"),
        ("out", 0o555, "folder-refused"),
        (".dagkit/App/staging", 0o555, "staging-failed"),
        (".dagkit/App/began", 0o000, "begin-unnoted"),
        (".dagkit/App/finishing", 0o555, "file-unplaced"),
        (".dagkit/App/finished", 0o555, "file-unplaced"),
        (".dagkit/App/ledger/chains/App/blocks", 0o555, "store-readonly"),
        (".dagkit/App/ledger/chains/App/blocks", 0o333, "store-readonly"),
    ],
)
def test_a_denied_permission_is_reported_and_loses_nothing(dagkit, write, folder, *, place, mode, code):
    write("app.py", APPLICATION)
    write("in/a.txt", "1\n2\n")
    assert dagkit(*LAUNCH).code == 0
    write("in/b.txt", "3\n")
    denied = folder / place
    before = denied.stat().st_mode
    denied.chmod(mode)
    try:
        # in a process that obeys permissions, also if root runs the tests
        failed = run_program([sys.executable, "-c", OBEYING, *LAUNCH], cwd=folder, check=False, seconds=50)
    finally:
        denied.chmod(before)
    assert failed.returncode
    assert f"[{code}]" in failed.stderr
    assert str(denied) in failed.stderr
    assert "Traceback" not in failed.stderr
    assert "cannot be written" not in failed.stderr or not mode & 0o200
    assert dagkit(*LAUNCH).code == 0
    lines = [line for path in (folder / "out").iterdir() for line in path.read_text().splitlines()]
    assert sorted(lines) == ["1", "2", "3"]
