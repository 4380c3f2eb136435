"""`python -m bench memory [--json] [--gib N …]`: the peak memory of Spark's Python workers, by the size of one file.

A worker holds a chunk, not a file, so its peak must be the same for a file of one gibibyte and for one of eight. A line
of almost one gibibyte must cost a bounded multiple of its size. Exits with 1 if this does not hold.
"""

import argparse
import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.ingesting.text import write_text
from dagkit import Config, Dag, PortContext, StreamingApplication
from dagkit.backends.spark import local_session
from dagkit.engine.record.run_events import Committed, RunEvent
from dagkit.launching import launch
from dagkit_operators import DirectoryScanner, FileSplitterInput, Filter, LineReader, RecordWriter, value

GIB = 1 << 30
TOLERANCE = 0.10
"""The largest relative difference between the peaks of two sizes."""
LONGEST_LINE_FACTOR = 6.0
"""The most memory for the longest line, as a multiple of its length."""


class Dropping(StreamingApplication):
    """Reads a file with two readers, and writes the lines that do not begin with a dot."""

    folder: Path

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        files = DirectoryScanner(files=(str(self.folder / "input"),))
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner=files))
        reader = dag.add_operator("Reader", LineReader(min_readers=2))
        keep = dag.add_operator("Filter", Filter(~value.starts_with(".")))
        writer = dag.add_operator("Writer", RecordWriter(file_path=str(self.folder / "output")))
        for port in (keep.input, writer.input):
            dag.set_input_port_attribute(port, PortContext.PARTITION_PARALLEL, True)
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, keep.input)
        dag.add_stream("kept", keep.output, writer.input)


@dataclass
class Peak:
    """The peak memory of the largest worker, and its input."""

    name: str
    input_bytes: int
    peak_bytes: int = 0

    def __call__(self, happening: RunEvent) -> None:
        """Measure every worker after each commit."""
        if isinstance(happening, Committed):
            self.peak_bytes = max(self.peak_bytes, *peaks_of_workers(), 0)


def peaks_of_workers() -> Iterator[int]:
    """The peak of each current Python worker of Spark."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if b"pyspark.daemon" in (process / "cmdline").read_bytes():
                status = (process / "status").read_text(encoding="utf-8")
                yield next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def measured(name: str, size: int, *, one_line: bool = False) -> Peak:
    """The peak of one launch, in its own session."""
    folder = Path(tempfile.mkdtemp(prefix="bench-memory-"))
    try:
        (folder / "input").mkdir()
        text = folder / "input" / "lines.txt"
        if one_line:
            with text.open("wb") as file:
                for _ in range(size >> 20):
                    file.write(b"x" * (1 << 20))
        else:
            write_text(text, size)
        peak = Peak(name, size)
        session = local_session(2)
        try:
            launch(Dropping(folder=folder), spark=session, until="once", path=folder / "application", observers=[peak])
        finally:
            session.stop()
        return peak
    finally:
        shutil.rmtree(folder)


def main(arguments: list[str]) -> int:
    """Measure each size and one long line; return 1 if the peaks differ too much."""
    parser = argparse.ArgumentParser(prog="python -m bench memory", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print a JSON line for each measurement")
    parser.add_argument("--gib", type=float, nargs="+", default=[1, 8], help="the sizes of the files")
    parser.add_argument("--line-gib", type=float, default=0.95, help="the size of the one long line")
    asked = parser.parse_args(arguments)
    peaks = [measured(f"{gib:g} GiB of lines", int(gib * GIB)) for gib in asked.gib]
    line = measured("one line", int(asked.line_gib * GIB), one_line=True)
    for peak in (*peaks, line):
        fields = asdict(peak)
        print(json.dumps(fields) if asked.json else f"{peak.name:>20}: peak {peak.peak_bytes / (1 << 20):7.0f} MiB")
    lowest, highest = min(p.peak_bytes for p in peaks), max(p.peak_bytes for p in peaks)
    holds = highest <= (1 + TOLERANCE) * lowest and line.peak_bytes <= LONGEST_LINE_FACTOR * line.input_bytes
    if not asked.json:
        print("holds" if holds else "does not hold")
    return 0 if holds else 1
