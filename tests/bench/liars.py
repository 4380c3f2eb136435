"""Contestants that do not do what they are asked to do, each in its own way."""

import shutil
from pathlib import Path


def keeps_everything(source: Path, target: Path) -> None:
    shutil.copy(source, target)


def loses_the_last_line(source: Path, target: Path) -> None:
    kept = [line for line in source.read_bytes().splitlines(keepends=True) if not line.startswith(b".")]
    (target / "kept").write_bytes(b"".join(kept[:-1]))


def fails(source: Path, target: Path) -> None:
    raise RuntimeError("no such engine")


def loses_the_last_line_once(source: Path, target: Path) -> float:
    """Its first process loses a line; it measures by its own clock."""
    kept = [line for line in source.read_bytes().splitlines(keepends=True) if not line.startswith(b".")]
    lost = source.parent / "lost"
    (target / "kept").write_bytes(b"".join(kept if lost.exists() else kept[:-1]))
    lost.touch()
    return 1e-9
