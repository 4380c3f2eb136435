"""Tables of lakes as external systems, which add each window as one version of the table."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from dagkit import StagedWindow
from dagkit_operators.tables.staged_rows import Description, TableWriter, check_fits, described, selected
from dagkit_operators.tables.storage import storage_failure

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_CONFLICTS = 20


class LakeTable(ABC):
    """A table whose library commits a version only after the one that it examined. A subclass calls the library."""

    def __init__(self, operator: TableWriter[Any], name: str) -> None:
        self._operator = operator
        self._name = name
        """The table in messages."""

    def prepare(self, writer: str) -> None:  # noqa: ARG002 - a version names the writer, and needs no preparation
        schema = self._operator.schema_known
        with self._failing():
            self._connect()
            if schema is not None:
                check_fits(schema, self._name, self._columns_of(self._opened(schema)))

    def apply(self, window: StagedWindow) -> None:
        with self._failing():
            staged = described(window)
            for left in reversed(range(_MOST_CONFLICTS)):
                # Again for each attempt: after a conflict, the newest version may have the window, or other columns.
                opened = self._opened(staged.schema)
                # Greater if the ledger is an older copy, whose windows repeat numbers.
                if self._last_window(opened, window.writer) >= window.window_id:
                    return
                columns = selected(staged.schema, self._name, self._columns_of(opened))
                try:
                    self._add(opened, window, staged, columns)
                except self._conflict() as error:
                    # Each attempt writes the rows again, and libraries report some faults of a storage as conflicts, so
                    # attempts without an end would fill it. After the failure the run waits, and can be stopped.
                    if not left:
                        raise storage_failure(error, self._name) from error
                else:
                    return

    def close(self) -> None:
        """Do nothing, unless the library keeps a connection."""

    def _connect(self) -> None:
        """Connect to the catalog of the table, if it has one."""

    @abstractmethod
    def _opened(self, schema: "pa.Schema") -> Any:
        """The newest version of the table, which is created if it is missing."""

    @abstractmethod
    def _columns_of(self, opened: Any) -> "pa.Schema":
        """The columns of a version."""

    @abstractmethod
    def _last_window(self, opened: Any, writer: str) -> int:
        """The last window of a writer that a version contains; 0 if there is none."""

    # Without retries of the library, a commit succeeds only as the version after the one that was examined. So an older
    # driver cannot add the window at the same time, and the library does not add the rows twice.
    @abstractmethod
    def _add(self, opened: Any, window: StagedWindow, staged: Description, columns: "pa.Schema") -> None:
        """Add a window and its number as the version after this one, without retries of the library."""

    @abstractmethod
    def _conflict(self) -> type[Exception]:
        """The error of the library for a version that was added in the meantime."""

    @abstractmethod
    def _failing(self) -> AbstractContextManager[None]:
        """Raise a failure with a code for an error of the library, the catalog or the storage."""
