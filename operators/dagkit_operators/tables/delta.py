"""Writing records to Delta tables, each of them once."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import Field, SecretStr, field_validator
from typing_extensions import TypeVar

from dagkit import ExternalOutput, StagedWindow
from dagkit_operators.libraries import library
from dagkit_operators.tables.staged_rows import TableWriter, check_fits, described, reader, selected
from dagkit_operators.tables.storage import add, has_credentials, hidden, plain, storage_failure, table_mismatched

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)
_ROW_GROUP_BYTES = 1 << 24
"""The bytes of rows in a row group, which the library has in memory until it writes the group."""


class DeltaTable:
    """A Delta table as an external system: each window is one version, whose transaction names the window."""

    def __init__(
        self,
        uri: str,
        *,
        partition_by: Sequence[str],
        settings: Mapping[str, str],
        schema: "pa.Schema | None",
        creates_table: bool,
    ) -> None:
        self._uri = uri
        self._partition_by = list(partition_by)
        self._settings = dict(settings)
        self._schema = schema
        self._creates_table = creates_table

    def prepare(self, writer: str) -> None:  # noqa: ARG002 - a version names the writer, and needs no preparation
        with self._failing():
            if self._schema is not None:
                check_fits(self._schema, self._uri, _columns_of(self._opened(self._schema)))

    def apply(self, window: StagedWindow) -> None:
        with self._failing():
            add(lambda: self._conflict_of(window), self._uri)

    def close(self) -> None:
        """Do nothing: no connection stays open."""

    def _conflict_of(self, window: StagedWindow) -> Exception | None:
        """Add the window, unless a version has it. Return the conflict with another version.

        Without retries, a commit succeeds only as the version after the one that was examined: so an older driver
        cannot add the window at the same time.
        """
        delta = library("deltalake", "delta")
        staged = described(window)
        opened = self._opened(staged.schema)
        known = opened.transaction_version(window.writer)
        if known is not None and known >= window.window_id:
            return None
        transaction = delta.Transaction(app_id=window.writer, version=window.window_id)
        properties = delta.CommitProperties(app_transactions=[transaction], max_commit_retries=0)
        parquet = delta.WriterProperties(max_row_group_size=max(1, _ROW_GROUP_BYTES // (staged.row_bytes + 1)))
        try:
            columns = selected(staged.schema, self._uri, _columns_of(opened))
            with reader(window, self._uri, columns) as rows:
                delta.write_deltalake(
                    opened, rows, mode="append", commit_properties=properties, writer_properties=parquet
                )
        except library("deltalake.exceptions", "delta").CommitFailedError as error:
            conflict: Exception = error
            return conflict
        return None

    def _opened(self, schema: "pa.Schema") -> Any:
        """The newest version of the table, which is created if it is missing."""
        delta = library("deltalake", "delta")
        if not delta.DeltaTable.is_deltatable(self._uri, self._settings):
            if not self._creates_table:
                raise table_mismatched(f"there is no Delta table at {self._uri}")
            delta.DeltaTable.create(
                self._uri, schema, mode="ignore", partition_by=self._partition_by, storage_options=self._settings
            )
        return delta.DeltaTable(self._uri, storage_options=self._settings)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Raise a failure with a code for an error of the library or the storage."""
        faults = library("deltalake.exceptions", "delta")
        try:
            yield
        except faults.SchemaMismatchError as error:
            raise table_mismatched(f"{self._uri}: {error}") from error
        except OSError as error:
            raise storage_failure(error, self._uri) from error


class DeltaWriter(TableWriter[T]):
    """Adds records, or Arrow record batches and tables, to a Delta table.

    The records of a window become visible together, after the window's commit, as one version of the table. It contains
    an application transaction with the number of the window, so that a window that is delivered again after a crash is
    there once.
    """

    kind = "delta.writer/1"
    staged = ExternalOutput(
        lambda writer: DeltaTable(
            writer.uri,
            partition_by=writer.partition_by,
            settings=plain(writer.storage_options),
            schema=writer.schema_known,
            creates_table=writer.creates_table,
        ),
        waits_seconds=lambda writer: writer.waits_seconds,
    )

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


def _columns_of(opened: Any) -> "pa.Schema":
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    return pa.schema(opened.schema().to_arrow())
