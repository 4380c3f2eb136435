"""The files that an application has written, as a DataFrame: those that its ledger names, and no other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from dagkit.dataframes.file_contents import is_divisible, is_parquet, parquet_file, rows_of_lines, rows_of_parquet
from dagkit.dataframes.source_options import PARTITION_BYTES, BatchOptions, options_invalid
from dagkit.engine.files.folders import folder_at
from dagkit.engine.files.staging import by_file
from dagkit.engine.record.history import history
from dagkit.errors import RunFailure, printable
from dagkit.ground.urls import parent
from dagkit.ledger import ChainNotFound, Ledger
from dagkit.ledger.audit.verify import verify

if TYPE_CHECKING:
    import pyarrow as pa

LINES = "value STRING"
"""The columns of text: one line in each row."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One complete file of an application."""

    path: str
    length: int


class Stretch(InputPartition):
    """A part of a file, for one task."""

    def __init__(self, path: str, start: int, end: int) -> None:
        super().__init__(path)
        self.path, self.start, self.end = path, start, end


class WrittenFiles(DataSourceReader):
    """Reads what one operator of an application has written."""

    def __init__(self, options: BatchOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Stretches of the files, whose lengths are those of the ledger."""
        return [stretch for file in written_files(self._options, proven=True) for stretch in _stretches(file)]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The rows of one stretch."""
        assert isinstance(partition, Stretch), "Spark returns what `partitions` made"
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - on workers only

        schema = to_arrow_schema(self._schema)
        rows = rows_of_parquet if is_parquet(partition.path) else rows_of_lines
        return rows(partition.path, partition.start, partition.end, schema)


def schema_of(options: BatchOptions) -> StructType | str:
    """The columns of an operator's files: those of the first Parquet file, else one text for each line."""
    # `partitions` proves them, when Spark reads: verifying takes time, and Spark asks for the schema first.
    files = written_files(options, proven=False)
    if not files or not is_parquet(files[0].path):
        return LINES
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - for Parquet files only

    schema: StructType = from_arrow_schema(parquet_file(files[0].path).schema_arrow)
    return schema


def written_files(options: BatchOptions, *, proven: bool) -> list[WrittenFile]:
    """The complete files of the operator, in the order of their windows; if `proven`, checked against the ledger."""
    ledger = _opened(options.path)
    if proven and options.verify:
        _verify(ledger, options.path)
    files: dict[str, dict[str, WrittenFile]] = {}
    for entry in history(ledger):
        for path, parts in by_file(entry.output.finished).items():
            length = sum(part.length for part in parts)
            files.setdefault(parts[0].operator, {})[path] = WrittenFile(path, length)
    found = list(files.get(_operator(options, sorted(files)), {}).values())
    if proven:
        for file in found:
            _check(file)
    return found


def _opened(path: str) -> Ledger:
    try:
        return Ledger.open(path)
    except ChainNotFound as error:
        raise options_invalid(
            f"{printable(path)} is no folder of an application: it contains no ledger",
            'name the APPLICATION_PATH of a launched application; for `spark.readStream`, add option("ledger", path)',
        ) from error


def _operator(options: BatchOptions, writers: Sequence[str]) -> str:
    if options.operator is not None:
        if options.operator not in writers:
            raise options_invalid(
                f"no operator {options.operator} has completed a file in {options.path}",
                f"operators with files: {', '.join(writers) or 'none yet'}",
            )
        return options.operator
    if len(writers) > 1:
        raise options_invalid(
            f"{len(writers)} operators have written files in {options.path}",
            f'choose one with option("operator", …): {", ".join(writers)}',
        )
    return writers[0] if writers else ""


def _verify(ledger: Ledger, path: str) -> None:
    verdict = verify(ledger)
    if not verdict.is_valid:
        raise RunFailure(
            f"the ledger in {path} is not valid: {verdict.faults[0]}",
            "run `dagkit ledger verify` for all faults",
            code="output-unproven",
        )


def _check(file: WrittenFile) -> None:
    """Raise `output-unproven` unless the file is as long as it was committed."""
    length = folder_at(parent(file.path)).length(file.path)
    if length != file.length:
        state = "is missing" if length is None else f"has {length} bytes instead of {file.length}"
        raise RunFailure(
            f"{printable(file.path)} {state}: it was changed after the application had written it, or is not in "
            "place yet",
            "restore it, or launch the application again if it was stopped while it put files in place",
            code="output-unproven",
        )


def _stretches(file: WrittenFile) -> Iterator[Stretch]:
    bounds = range(0, file.length, PARTITION_BYTES) if is_divisible(file.path) else range(min(file.length, 1))
    for start in bounds:
        end = min(start + PARTITION_BYTES, file.length) if len(bounds) > 1 else file.length
        yield Stretch(file.path, start, end)
