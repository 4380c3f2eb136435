"""New records in new log files of directories: one operator finds the files, another reads them on and on.

A line looks like `2024-05-01T12:00:00+00:00 ERROR disk 7 is full`. Lines that do not are kept apart, with where they
stand; and so is what became of files that cannot be read on.
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
    """What a line says."""
    time, level, message = line.split(" ", 2)
    return Entry(datetime.fromisoformat(time), level, message)


class TailLogs(TailFiles[Entry]):
    """Reads logs on and on, entry by entry."""

    kind = "tail.logs/1"
    messages = OutputPort(Entry, main=True)


def refused(what: Rejected | Lost) -> str:
    """What could not be read, and why."""
    return f"{what.path} at {what.start}: {what.reason}"


class Tail(StreamingApplication):
    """What is appended to any log file that lies in a directory, or ever comes there."""

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
