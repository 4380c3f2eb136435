"""Reads logs, writes their errors to separate files, and counts the warnings and errors of each component.

The reader feeds two filters, both filters feed one operator, and there are two outputs. A line looks like
`ERROR storage disk 7 is full`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dagkit import Config, Dag, InputPort, KeyedState, Operator, OutputPort, StreamingApplication
from dagkit_operators import FileSplitterInput, Filter, LineReader, PartWriter, Record, value


@dataclass(frozen=True, slots=True)
class Troubles:
    """The warnings and errors of one component, over all windows."""

    component: str
    warnings: int
    errors: int

    def __str__(self) -> str:
        return f"{self.component} {self.warnings} {self.errors}"


def component_of(line: Record[str]) -> str:
    """The second word of a line."""
    return line.value.split(maxsplit=2)[1]


class Tally(Operator):
    """Counts warnings and errors by component, and emits all counts when there is no more input for now."""

    kind = "log-levels.tally/1"
    warnings = InputPort[Record[str]](key=component_of)
    errors = InputPort[Record[str]](key=component_of)
    troubles = OutputPort(Troubles)

    warned = KeyedState[str, int](int)
    failed = KeyedState[str, int](int)

    @warnings.process
    def count_warning(self, line: Record[str]) -> None:
        self.warned[component_of(line)] += 1

    @errors.process
    def count_error(self, line: Record[str]) -> None:
        self.failed[component_of(line)] += 1

    def drained(self) -> None:
        for troubles in self._all():
            self.troubles.emit(troubles)

    def _all(self) -> Iterator[Troubles]:
        for component in sorted({*self.warned, *self.failed}):
            yield Troubles(component, self.warned.get(component, 0), self.failed.get(component, 0))


class LogLevels(StreamingApplication):
    """One reader, two filters, a tally of both, and two kinds of file."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        splitter = dag.add_operator("Splitter", FileSplitterInput())
        reader = dag.add_operator("Reader", LineReader())
        warnings = dag.add_operator("Warnings", Filter(value.starts_with("WARN ")))
        errors = dag.add_operator("Errors", Filter(value.starts_with("ERROR ")))
        tally = dag.add_operator("Tally", Tally())
        error_files = dag.add_operator("Error-files", PartWriter())
        tally_file = dag.add_operator("Tally-file", PartWriter(format=str))

        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, warnings.input, errors.input)
        dag.add_stream("warnings", warnings.output, tally.warnings)
        dag.add_stream("errors", errors.output, tally.errors, error_files.input)
        dag.add_stream("troubles", tally.troubles, tally_file.input)
