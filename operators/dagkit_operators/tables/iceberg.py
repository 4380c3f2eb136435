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
from dagkit_operators.tables.lake_table import LakeTable
from dagkit_operators.tables.staged_rows import Description, TableWriter, pieces
from dagkit_operators.tables.storage import database_refused, hidden, plain, storage_failure, table_mismatched

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)
_RETRIES = "commit.retry.num-retries"
_REFUSED = ("UnauthorizedError", "ForbiddenError", "OAuthError", "AuthorizationExpiredError")
_AWAY = ("ServiceUnavailableError", "ServerError", "TooManyRequestsError", "CommitStateUnknownException")


class IcebergTable(LakeTable):
    """An Iceberg table: each window is one snapshot, and a property of the table names the last window."""

    def __init__(self, operator: "IcebergWriter[Any]") -> None:
        super().__init__(operator, operator.table)
        self._settings = plain(operator.catalog)
        self._catalog: Any = None

    def close(self) -> None:
        if self._catalog is not None:
            self._catalog.close()

    def _connect(self) -> None:
        self._catalog = library("pyiceberg.catalog", "iceberg").load_catalog(**self._settings)

    def _opened(self, schema: "pa.Schema") -> Any:
        if not self._catalog.table_exists(self._name):
            if not self._operator.creates_table:
                raise table_mismatched(f"the catalog has no table {self._name}")
            # Another writer may create either at the same time.
            self._catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
            self._catalog.create_table_if_not_exists(self._name, schema=schema)
        return self._catalog.load_table(self._name)

    def _columns_of(self, opened: Any) -> "pa.Schema":
        columns: pa.Schema = opened.schema().as_arrow()
        return columns

    def _last_window(self, opened: Any, writer: str) -> int:
        return int(opened.properties.get(_property_of(writer), 0))

    def _add(self, opened: Any, window: StagedWindow, staged: Description, columns: "pa.Schema") -> None:  # noqa: ARG002 - the library divides rows by itself
        opened.metadata.properties[_RETRIES] = "0"  # in this process alone: the library would add the rows again
        summary = {"dagkit.writer": window.writer, "dagkit.window": str(window.window_id)}
        with opened.transaction() as transaction:
            self._append(transaction, pieces(window, self._name, columns), summary)
            transaction.set_properties({_property_of(window.writer): str(window.window_id)})

    def _append(self, transaction: Any, rows: "Iterator[pa.Table]", summary: Mapping[str, str]) -> None:
        """Write the data files piece by piece, and add them as one snapshot."""
        # The method of the library holds all rows in memory, also those of a reader: it hands them to a pool at once.
        write = library("pyiceberg.io.pyarrow", "iceberg")._dataframe_to_data_files  # noqa: SLF001 - it has no other name
        numbers, metadata = itertools.count(), transaction.table_metadata
        with transaction.update_snapshot(snapshot_properties=summary).fast_append() as snapshot:
            for piece in rows:
                files = write(metadata, piece, transaction._table.io, snapshot.commit_uuid, numbers)  # noqa: SLF001 - as above
                for file in files:
                    snapshot.append_data_file(file)

    def _conflict(self) -> type[Exception]:
        conflict: type[Exception] = library("pyiceberg.exceptions", "iceberg").CommitFailedException
        return conflict

    @contextmanager
    def _failing(self) -> Iterator[None]:
        faults = library("pyiceberg.exceptions", "iceberg")
        refused = tuple(getattr(faults, name) for name in _REFUSED)
        away = (OSError, *(getattr(faults, name) for name in _AWAY))
        try:
            yield
        except refused as error:
            raise database_refused(f"the catalog of {self._name}: {error}") from error
        # The library of a catalog in a database is loaded within the block, so its errors are known only here.
        except (*away, *_errors_of_databases()) as error:
            raise storage_failure(error, self._name) from error


class IcebergWriter(TableWriter[T]):
    """Adds records, or Arrow record batches and tables, to an Iceberg table.

    The records of a window become visible together, after the window's commit, as one snapshot. Its summary names the
    window, and so does a property of the table, by which a window that is delivered again after a crash is there once.
    """

    kind = "iceberg.writer/1"
    staged = ExternalOutput(IcebergTable, waits_seconds=lambda writer: writer.waits_seconds)

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


def _property_of(writer: str) -> str:
    """The property of a table that holds the last window of a writer."""
    return f"dagkit.window.{writer}"


def _errors_of_databases() -> tuple[type[Exception], ...]:
    """What a catalog in a database raises if that is away or locked; nothing if no such catalog was opened."""
    faults = sys.modules.get("sqlalchemy.exc")
    return () if faults is None else (faults.OperationalError, faults.InterfaceError, faults.TimeoutError)
