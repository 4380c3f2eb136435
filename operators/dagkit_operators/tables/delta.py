"""Writing records to Delta tables, each of them once."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import Field, SecretStr, field_validator
from typing_extensions import TypeVar

from dagkit import ExternalOutput, StagedWindow
from dagkit_operators.libraries import library
from dagkit_operators.tables.lake_table import LakeTable
from dagkit_operators.tables.staged_rows import Description, TableWriter, reader
from dagkit_operators.tables.storage import has_credentials, hidden, plain, storage_failure, table_mismatched

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)
_ROW_GROUP_BYTES = 1 << 24
"""The bytes of rows in a row group, which the library has in memory until it writes the group."""


class DeltaTable(LakeTable):
    """A Delta table: each window is one version, whose transaction names the window."""

    def __init__(self, operator: "DeltaWriter[Any]") -> None:
        super().__init__(operator, operator.uri)
        self._partition_by = list(operator.partition_by)
        self._settings = plain(operator.storage_options)

    def _opened(self, schema: "pa.Schema") -> Any:
        delta = library("deltalake", "delta")
        if not delta.DeltaTable.is_deltatable(self._name, self._settings):
            if not self._operator.creates_table:
                raise table_mismatched(f"there is no Delta table at {self._name}")
            # Another writer may create it at the same time, hence the mode.
            delta.DeltaTable.create(
                self._name, schema, mode="ignore", partition_by=self._partition_by, storage_options=self._settings
            )
        return delta.DeltaTable(self._name, storage_options=self._settings)

    def _columns_of(self, opened: Any) -> "pa.Schema":
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        return pa.schema(opened.schema().to_arrow())

    def _last_window(self, opened: Any, writer: str) -> int:
        return int(opened.transaction_version(writer) or 0)

    def _add(self, opened: Any, window: StagedWindow, staged: Description, columns: "pa.Schema") -> None:
        delta = library("deltalake", "delta")
        transaction = delta.Transaction(app_id=window.writer, version=window.window_id)
        properties = delta.CommitProperties(app_transactions=[transaction], max_commit_retries=0)
        parquet = delta.WriterProperties(max_row_group_size=max(1, _ROW_GROUP_BYTES // (staged.row_bytes + 1)))
        with reader(window, self._name, columns) as rows:
            delta.write_deltalake(opened, rows, mode="append", commit_properties=properties, writer_properties=parquet)

    def _conflict(self) -> type[Exception]:
        conflict: type[Exception] = library("deltalake.exceptions", "delta").CommitFailedError
        return conflict

    @contextmanager
    def _failing(self) -> Iterator[None]:
        faults = library("deltalake.exceptions", "delta")
        try:
            yield
        except faults.SchemaMismatchError as error:
            raise table_mismatched(f"{self._name}: {error}") from error
        except OSError as error:
            raise storage_failure(error, self._name) from error


class DeltaWriter(TableWriter[T]):
    """Adds records, or Arrow record batches and tables, to a Delta table.

    The records of a window become visible together, after the window's commit, as one version of the table. It contains
    an application transaction with the number of the window, so that a window that is delivered again after a crash is
    there once.
    """

    kind = "delta.writer/1"
    staged = ExternalOutput(DeltaTable, waits_seconds=lambda writer: writer.waits_seconds)

    uri: str = Field(default=..., kw_only=False, min_length=1)
    """The table: a path, or a URL such as `s3://bucket/table`, without credentials."""
    partition_by: tuple[str, ...] = ()
    """The columns whose values divide a table that is created into folders."""
    storage_options: Mapping[str, str | SecretStr] = {}
    """Settings of the storage by their names in deltalake, such as `AWS_ACCESS_KEY_ID`.

    The values of names such as `AWS_SECRET_ACCESS_KEY` are secret: no message shows them. A URL with a user or a query
    is secret as well.
    """

    @field_validator("uri")
    @classmethod
    def _shows_no_credentials(cls, uri: str) -> str:
        if has_credentials(uri):
            raise ValueError("the uri shows a user or a query: set what they grant in `storage_options` instead")
        return uri

    @field_validator("storage_options")
    @classmethod
    def _hides_credentials(cls, options: Mapping[str, str | SecretStr]) -> Mapping[str, str | SecretStr]:
        return hidden(options)
