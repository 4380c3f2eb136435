"""dagkit: the application, with a columnar filter and with a filter of single lines."""

from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from bench.ingesting.sizes import BLOCK_SIZE, cores
from dagkit import Config, Dag, DagContext, PortContext, StreamingApplication
from dagkit.backends.spark import local_session
from dagkit.launching import launch
from dagkit_operators import FileSplitterInput, Filter, LineReader, Record, RecordWriter, value
from dagkit_operators.finding.scanner import DirectoryScanner


class Ingest(StreamingApplication):
    """Reads one file with all cores, drops the lines that begin with a dot, writes a file for each block."""

    source: Path
    target: Path
    columnar: bool
    """Whether the filter is an expression on Arrow columns instead of a function of one line."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        scanner = DirectoryScanner(files=(str(self.source),))
        splitter = dag.add_operator("File-splitter", FileSplitterInput(scanner=scanner, block_size=BLOCK_SIZE))
        reader = dag.add_operator("Block-reader", LineReader(min_readers=cores()))
        keep = dag.add_operator("Filter", self._filter())
        writer = dag.add_operator("Record-writer", RecordWriter(file_path=str(self.target)))
        for inlet in (keep.input, writer.input):
            dag.set_input_port_attribute(inlet, PortContext.PARTITION_PARALLEL, True)
        dag.set_attribute(DagContext.APPLICATION_PATH, str(self.target.parent / "application"))
        dag.add_stream("file-block metadata", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("records", reader.messages, keep.input)
        dag.add_stream("filtered-records", keep.output, writer.input)

    def _filter(self) -> Filter[Record[str]]:
        if self.columnar:
            return Filter(~value.starts_with("."))
        return Filter(lambda line: not line.startswith("."))


@cache
def _session() -> SparkSession:
    return local_session()


def batch(source: Path, target: Path) -> None:
    """Filter with an expression on Arrow columns: no Python code for each record."""
    launch(Ingest(source=source, target=target, columnar=True), spark=_session(), until="once")


def batch_unsynced(source: Path, target: Path) -> None:
    """The same without syncing: safe against crashes, not against power loss."""
    launch(Ingest(source=source, target=target, columnar=True), spark=_session(), until="once", durable=False)


def record(source: Path, target: Path) -> None:
    """Filter with a lambda, called for each line."""
    launch(Ingest(source=source, target=target, columnar=False), spark=_session(), until="once")
