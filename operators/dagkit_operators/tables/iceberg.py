"""Writing records to Iceberg tables, each of them once."""

import itertools
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import Field, SecretStr, field_validator
from typing_extensions import TypeVar

from dagkit import ExternalOutput, StagedWindow
from dagkit_operators.libraries import library
from dagkit_operators.tables.staged_rows import TableWriter, check_fits, described, pieces, selected
from dagkit_operators.tables.storage import add, database_refused, hidden, plain, storage_failure, table_mismatched

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)
_RETRIES = "commit.retry.num-retries"
_REFUSED = ("UnauthorizedError", "ForbiddenError", "OAuthError", "AuthorizationExpiredError")
_AWAY = ("ServiceUnavailableError", "ServerError", "TooManyRequestsError", "CommitStateUnknownException")


class IcebergTable:
    """An Iceberg table as an external system: each window is one snapshot, and a property names the last window."""

    def __init__(
        self, catalog: Mapping[str, str], table: str, *, schema: "pa.Schema | None", creates_table: bool
    ) -> None:
        self._settings = dict(catalog)
        self._table = table
        self._schema = schema
        self._creates_table = creates_table
        self._catalog: Any = None

    def prepare(self, writer: str) -> None:  # noqa: ARG002 - a snapshot names the writer, and needs no preparation
        with self._failing():
            self._catalog = library("pyiceberg.catalog", "iceberg").load_catalog(**self._settings)
            if self._schema is not None:
                check_fits(self._schema, self._table, self._opened(self._schema).schema().as_arrow())

    def apply(self, window: StagedWindow) -> None:
        with self._failing():
            add(lambda: self._conflict_of(window), self._table)

    def close(self) -> None:
        if self._catalog is not None:
            self._catalog.close()

    def _conflict_of(self, window: StagedWindow) -> Exception | None:
        """Add the window, unless the table has it. Return the conflict with another snapshot.

        Without retries, a commit succeeds only after the snapshot that was examined: so an older driver cannot add the
        window at the same time.
        """
        schema, name = described(window).schema, f"dagkit.window.{window.writer}"
        opened = self._opened(schema)
        if int(opened.properties.get(name, 0)) >= window.window_id:
            return None
        columns = selected(schema, self._table, opened.schema().as_arrow())
        opened.metadata.properties[_RETRIES] = "0"  # in this process alone: the library would add the rows again
        summary = {"dagkit.writer": window.writer, "dagkit.window": str(window.window_id)}
        try:
            with opened.transaction() as transaction:
                self._append(transaction, pieces(window, self._table, columns), summary)
                transaction.set_properties({name: str(window.window_id)})
        except library("pyiceberg.exceptions", "iceberg").CommitFailedException as error:
            conflict: Exception = error
            return conflict
        return None

    def _append(self, transaction: Any, rows: "Iterator[pa.Table]", summary: Mapping[str, str]) -> None:
        """Write the data files piece by piece, and add them as one snapshot.

        The method of the library holds all rows in memory, of a reader, too: it hands them to a pool at once.
        """
        write = library("pyiceberg.io.pyarrow", "iceberg")._dataframe_to_data_files  # noqa: SLF001 - it has no other name
        numbers, metadata = itertools.count(), transaction.table_metadata
        with transaction.update_snapshot(snapshot_properties=summary).fast_append() as snapshot:
            for piece in rows:
                files = write(metadata, piece, transaction._table.io, snapshot.commit_uuid, numbers)  # noqa: SLF001 - as above
                for file in files:
                    snapshot.append_data_file(file)

    def _opened(self, schema: "pa.Schema") -> Any:
        """The newest state of the table, which is created if it is missing."""
        if not self._catalog.table_exists(self._table):
            if not self._creates_table:
                raise table_mismatched(f"the catalog has no table {self._table}")
            self._catalog.create_namespace_if_not_exists(self._table.rpartition(".")[0])
            self._catalog.create_table_if_not_exists(self._table, schema=schema)
        return self._catalog.load_table(self._table)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Raise a failure with a code for an error of the library, the catalog or the storage."""
        faults = library("pyiceberg.exceptions", "iceberg")
        refused = tuple(getattr(faults, name) for name in _REFUSED)
        away = (OSError, *(getattr(faults, name) for name in _AWAY))
        try:
            yield
        except refused as error:
            raise database_refused(f"the catalog of {self._table}: {error}") from error
        except (*away, *_errors_of_databases()) as error:  # which the block may have loaded
            raise storage_failure(error, self._table) from error


class IcebergWriter(TableWriter[T]):
    """Adds records, or Arrow record batches and tables, to an Iceberg table.

    The records of a window become visible together, after the window's commit, as one snapshot. Its summary names the
    window, and so does a property of the table, by which a window that is delivered again after a crash is there once.
    """

    kind = "iceberg.writer/1"
    staged = ExternalOutput(
        lambda writer: IcebergTable(
            plain(writer.catalog), writer.table, schema=writer.schema_known, creates_table=writer.creates_table
        ),
        waits_seconds=lambda writer: writer.waits_seconds,
    )

    catalog: Mapping[str, str | SecretStr] = Field(default=...)
    """The settings of the catalog by their names in pyiceberg, such as `type`, `uri` and `warehouse`.

    `name` is the name of the catalog, which one in a database keeps with its tables; without it, "default".

    The values of names such as `s3.secret-access-key`, `token` and `credential` are secret: no message shows them.
    A URL with a user or a query is secret as well.
    """
    table: str = Field(default=..., kw_only=False)
    """The namespace and the name of the table, with dots."""

    @field_validator("catalog")
    @classmethod
    def _hides_credentials(cls, catalog: Mapping[str, str | SecretStr]) -> Mapping[str, str | SecretStr]:
        return hidden(catalog)

    @field_validator("table")
    @classmethod
    def _has_a_namespace(cls, table: str) -> str:
        if not all(table.split(".")) or "." not in table:
            raise ValueError("a table of a catalog is named by its namespace and its name, as in sales.orders")
        return table


def _errors_of_databases() -> tuple[type[Exception], ...]:
    """What a catalog in a database raises if that is away or locked; nothing if no such catalog was opened."""
    faults = sys.modules.get("sqlalchemy.exc")
    return () if faults is None else (faults.OperationalError, faults.InterfaceError, faults.TimeoutError)
