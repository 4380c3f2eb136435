"""DataFrames of Spark: as input, each row exactly once, and as output of each window."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from pydantic import Field, InstanceOf, PrivateAttr, SecretStr, model_validator
from typing_extensions import TypeVar

from dagkit import Context, ExternalOutput, Shutdown, StagedWindow, State
from dagkit.errors import RunFailure
from dagkit.ground.urls import below, is_url, resolved, shown
from dagkit_operators.finding.splitting import AbstractFileSplitter
from dagkit_operators.payloads import FileInfo
from dagkit_operators.tables.staged_rows import StagesRows, described, pieces
from dagkit_operators.tables.storage import plain

if TYPE_CHECKING:
    import pyarrow as pa


class OnDriver:
    """A value of the driver. Workers receive an empty copy, and all of a class are equal: no plan depends on one."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()

    def __repr__(self) -> str:
        return type(self).__name__.strip("_")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


@contextmanager
def setting(session: Any, name: str, value: str) -> Iterator[None]:
    """Change a setting of a session for the time of the block."""
    before = session.conf.get(name)
    session.conf.set(name, value)
    try:
        yield
    finally:
        session.conf.set(name, before)


_CARRIED = frozenset(
    {"boolean", "byte", "short", "integer", "long", "float", "double", "decimal"}
    | {"string", "char", "varchar", "binary", "date", "timestamp", "timestamp_ntz"}
)
"""The types of Spark whose values come back from Parquet files as they were, beside those that contain others."""
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


def _columns_uncarried(columns: Mapping[str, str]) -> RunFailure:
    """A DataFrame has columns whose values would not come back from Parquet files as they were."""
    listed = ", ".join(f"{name} ({kind})" for name, kind in columns.items())
    return RunFailure(
        f"these columns of the DataFrame have types that Parquet files cannot carry: {listed}",
        "cast them to text, bytes or numbers, or drop them, before the DataFrame is given to SparkSource",
        code="columns-uncarried",
    )


def _snapshot_lost(folder: str) -> RunFailure:
    """The snapshot of a DataFrame is gone, and not all of it was read."""
    return RunFailure(
        f"the rows of the DataFrame that were stored in {shown(folder)} are gone, and not all of them were read",
        "restore the folder, or start over under another APPLICATION_PATH: the DataFrame is then stored again",
        code="snapshot-lost",
    )


class _Frame(OnDriver):
    """A DataFrame; what is read is its snapshot."""


def _as_frame(given: Any) -> Any:
    """A DataFrame so that workers do not receive it; any other value unchanged."""
    return _Frame(given) if hasattr(given, "write") and hasattr(given, "schema") else given


class SparkSource(AbstractFileSplitter):
    """Stores the rows of a DataFrame, once, and describes the blocks in which `ParquetReader` reads them.

    Spark may compute a DataFrame differently each time. Therefore Spark first writes its rows to Parquet files in the
    application's folder; the ledger records each block of these files, and a later launch continues with the same rows.
    The application ends when all rows are read.
    """

    kind = "frames.spark-source/1"

    data_frame: InstanceOf[_Frame] = Field(default=...)
    """The DataFrame."""

    folder = State("")
    """Where the rows are stored; empty until all are."""
    parts = State[list[str]](list)
    """The names of the files that are not divided yet."""

    _home: str = PrivateAttr(default="")
    _writing: "Future[list[str]] | None" = PrivateAttr(default=None)

    # A validator would not do: the given values are kept, and pickled for workers, to which no DataFrame can go.
    def __init__(self, data_frame: Any = None, **given: Any) -> None:
        super().__init__(**({} if data_frame is None else {"data_frame": _as_frame(data_frame)}), **given)

    def setup(self, context: Context) -> None:
        super().setup(context)
        self._home = below(below(context.application_path, "frames"), context.operator)
        self._writing = None
        if self.folder and (self.parts or self.cut is not None) and not _names(self.folder):
            raise _snapshot_lost(self.folder)

    def emit_tuples(self) -> None:
        """Store the rows in the background; then describe as many blocks as a window may have."""
        if not self.folder:
            if self._writing is None:
                assert self._context is not None, "an operator is set up before it runs"
                self._writing = self._context.in_background(self._write)
            if not self._writing.done():
                return
            self.parts, self.folder = self._writing.result(), self._home
        self.process_files()
        if not self.parts and self.cut is None:
            raise Shutdown

    def get_file_info(self) -> FileInfo | None:
        """The next file of the snapshot."""
        if not self.parts:
            return None
        name, self.parts = self.parts[0], self.parts[1:]
        return FileInfo(below(self.folder, name))

    def _write(self) -> list[str]:
        """Let Spark write the rows; files of an attempt that was interrupted are overwritten."""
        frame = self.data_frame.value
        _check_columns(frame)
        # Spark's default form of instants has no time zone, and no room for years after 2262.
        with setting(frame.sparkSession, _TIMESTAMPS, "TIMESTAMP_MICROS"):
            frame.write.mode("overwrite").parquet(self._home)
        return _names(self._home)


def _check_columns(frame: Any) -> None:
    """Raise `columns-uncarried` if a column, or a part of one, has a type that cannot be carried."""
    refused = {name: kind for field in frame.schema.fields for name, kind in _refused(field.name, field.dataType)}
    if refused:
        raise _columns_uncarried(refused)


def _refused(name: str, kind: Any) -> Iterator[tuple[str, str]]:
    """The parts of a column that cannot be carried, each with its type."""
    match kind.typeName():
        case "struct" if kind.fields:
            for field in kind.fields:
                yield from _refused(f"{name}.{field.name}", field.dataType)
        case "array":
            yield from _refused(f"{name}[]", kind.elementType)
        case "map":
            yield from _refused(f"{name}.key", kind.keyType)
            yield from _refused(f"{name}.value", kind.valueType)
        case other if other.partition("(")[0] not in _CARRIED:
            yield name, kind.simpleString()


def _names(folder: str) -> list[str]:
    """The Parquet files in a folder, in order."""
    if is_url(folder):
        import pyarrow.fs as pa_fs  # noqa: PLC0415 - not loaded for local folders

        filesystem, path, _ = resolved(folder)
        found = filesystem.get_file_info(pa_fs.FileSelector(path, allow_not_found=True))
        return sorted(info.base_name for info in found if info.base_name.endswith(".parquet"))
    return sorted(path.name for path in Path(folder).glob("*.parquet"))


T = TypeVar("T", default=Any)
_NAIVE = "spark.sql.timestampType"


class SparkWindows:
    """A session of Spark as an external system: each window is a DataFrame, which the sink writes."""

    def __init__(self, sink: "SparkSink[Any]") -> None:
        self._sink = sink

    def prepare(self, writer: str) -> None:  # noqa: ARG002 - `write_window` receives its name with each window
        """Let Spark refuse columns that it cannot hold."""
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        schema = self._sink.schema_known
        if schema is not None:
            self._frame_of(pa.table({column.name: pa.nulls(1, column.type) for column in schema}))

    def apply(self, window: StagedWindow) -> None:
        import pyarrow as pa  # noqa: PLC0415 - as above

        rows = pieces(window, f"window {window.window_id}", described(window).schema)
        self._sink.write_window(self._frame_of(pa.concat_tables(rows)), window)

    def close(self) -> None:
        """Do nothing: the session is the author's."""

    def _frame_of(self, rows: "pa.Table") -> Any:
        # Datetimes without a time zone stay so. By default, Spark gives them that of the session.
        session = self._sink.session.value
        with setting(session, _NAIVE, "TIMESTAMP_NTZ"):
            return session.createDataFrame(rows)


class _Session(OnDriver):
    """A session of Spark."""


class SparkSink(StagesRows[T]):
    """Writes records, or Arrow record batches and tables, with Spark: those of a window as a DataFrame.

    Spark writes a window after its commit, one window after the other. After a crash, the next launch writes the last
    window again if its end was not noted. With `path`, each record is there once: a window has its own folder, which is
    then overwritten. With `write`, the function is called again with the same rows and the same number: each record is
    written at least once, and exactly once if the function recognizes the number.
    """

    kind = "frames.spark-sink/1"
    staged = ExternalOutput(SparkWindows)

    session: InstanceOf[_Session] = Field(default=...)
    """The session of Spark, classic or of Spark Connect; it need not be the one that runs the application."""
    path: str | None = None
    """A folder, as Spark names it. A window goes to `writer=W/window=N` below, where W names this output."""
    format: str = "parquet"
    """The format of the files below `path`, such as parquet, orc, json or csv."""
    options: Mapping[str, str | SecretStr] = {}
    """Options of the writer of this format. The values of names such as `password` are secret and never shown."""
    write: Callable[[Any, int], Any] | None = None
    """Called with the DataFrame and the number of each window instead, as the function of `foreachBatch`."""

    def __init__(self, session: Any = None, **given: Any) -> None:
        if session is not None:
            given["session"] = _Session(session) if hasattr(session, "createDataFrame") else session
        super().__init__(**given)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.path is None) == (self.write is None):
            raise ValueError("it needs a path, or write, and not both")
        return self

    def write_window(self, rows: Any, window: StagedWindow) -> None:
        """Write a window, again if it was written before."""
        if self.write is not None:
            self.write(rows, window.window_id)
            return
        folder = f"{self.path}/writer={quote(window.writer, safe='')}/window={window.window_id}"
        rows.write.format(self.format).options(**plain(self.options)).mode("overwrite").save(folder)
