"""Follows log files in folders: one operator finds the files, another reads them as they grow.

A line looks like `2024-05-01T12:00:00+00:00 ERROR disk 7 is full`. Other lines are written to separate files with their
positions, and so are reports on files that cannot be read further.
"""

from dataclasses import dataclass
from datetime import datetime

from dagkit import Config, Dag, OutputPort, StreamingApplication
from dagkit_operators import Items, Lost, MatchFiles, PartWriter, Rejected, TailFiles


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a log."""

    time: datetime
    level: str
    message: str

    def __str__(self) -> str:
        return f"{self.level} {self.message}"


def entry_of(line: str) -> Entry:
    """Parse a line."""
    time, level, message = line.split(" ", 2)
    return Entry(datetime.fromisoformat(time), level, message)


class TailLogs(TailFiles[Entry]):
    """Follows logs, entry by entry."""

    kind = "tail.logs/1"
    messages = OutputPort(Entry, main=True)


def refused(what: Rejected | Lost) -> str:
    """A report on what could not be read, with the reason."""
    return f"{what.path} at {what.start}: {what.reason}"


class Tail(StreamingApplication):
    """Reads everything that is appended to log files in a folder, including files created later."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        patterns = dag.add_operator("Patterns", Items[str]())
        match = dag.add_operator("Match", MatchFiles(continuously=True))
        tail = dag.add_operator("Tail", TailLogs(parse=entry_of))
        entries = dag.add_operator("Entries", PartWriter(format=str))
        rejected = dag.add_operator("Rejected", PartWriter(format=refused))
        lost = dag.add_operator("Lost", PartWriter(format=refused))

        dag.add_stream("patterns", patterns.output, match.patterns)
        dag.add_stream("files", match.files, tail.files)
        dag.add_stream("entries", tail.messages, entries.input)
        dag.add_stream("rejected", tail.rejected, rejected.input)
        dag.add_stream("lost", tail.lost, lost.input)
