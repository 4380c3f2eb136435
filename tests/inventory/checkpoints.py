"""Checkpoints of Structured Streaming as Spark writes them, for tests without Spark."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

OFFSETS = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'


@dataclass
class Checkpoint:
    """A checkpoint with one file source."""

    folder: Path
    scheme: str = "file://"

    def __post_init__(self) -> None:
        for name in ("offsets", "commits", "sources/0"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.write("metadata", '{"id":"the-query"}')

    def write(self, name: str, *lines: str) -> None:
        (self.folder / name).write_text("\n".join(lines), encoding="utf-8")

    def entry(self, path: Path, number: int, millis: int | None = None) -> str:
        """A line of the source's log."""
        time = path.stat().st_mtime_ns // 1_000_000 if millis is None else millis
        url = self.scheme + quote(str(path), safe="/é+")
        return json.dumps({"path": url, "timestamp": time, "batchId": number}, ensure_ascii=False)

    def log(self, number: int, *entries: str, compact: bool = False) -> None:
        self.write(f"sources/0/{number}{'.compact' if compact else ''}", "v1", *entries)

    def plan(self, batch: int, offset: int, *others: str) -> None:
        self.write(f"offsets/{batch}", "v1", OFFSETS, json.dumps({"logOffset": offset}), *others)

    def end(self, batch: int) -> None:
        self.write(f"commits/{batch}", "v1", '{"nextBatchWatermarkMs":0}')

    def read(self, *batches: Sequence[Path]) -> "Checkpoint":
        """Note one micro-batch after the other, each of which has ended."""
        for number, files in enumerate(batches):
            self.log(number, *(self.entry(path, number) for path in files))
            self.plan(number, number)
            self.end(number)
        return self
