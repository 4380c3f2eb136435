"""A launch without permission for a file or folder names it with a code; after permission is given, nothing is lost."""

import sys
from collections.abc import Sequence

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


def launched(folder):
    """Launch the application in a process that obeys permissions, also if root runs the tests."""
    command: Sequence[str] = ("launch", "app.py", "--reference", "--once", "-q")
    return run_program([sys.executable, "-c", OBEYING, *command], cwd=folder, check=False, seconds=50)


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
def test_a_denied_permission_is_reported_and_loses_nothing(place, mode, code, tmp_path):
    (tmp_path / "app.py").write_text(APPLICATION)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("1\n2\n")
    assert launched(tmp_path).returncode == 0
    (tmp_path / "in" / "b.txt").write_text("3\n")
    denied = tmp_path / place
    before = denied.stat().st_mode
    denied.chmod(mode)
    try:
        failed = launched(tmp_path)
    finally:
        denied.chmod(before)
    assert failed.returncode
    assert f"[{code}]" in failed.stderr
    assert str(denied) in failed.stderr
    assert "Traceback" not in failed.stderr
    assert "cannot be written" not in failed.stderr or not mode & 0o200
    assert launched(tmp_path).returncode == 0
    lines = [line for path in (tmp_path / "out").iterdir() for line in path.read_text().splitlines()]
    assert sorted(lines) == ["1", "2", "3"]
