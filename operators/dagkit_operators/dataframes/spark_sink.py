"""Writing records as DataFrames, with any writer of Spark."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from pydantic import Field, InstanceOf, SecretStr, model_validator
from typing_extensions import TypeVar

from dagkit import ExternalOutput, StagedWindow
from dagkit_operators.dataframes.on_driver import OnDriver, setting
from dagkit_operators.tables.staged_rows import StagesRows, described, pieces
from dagkit_operators.tables.storage import plain

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)
_NAIVE = "spark.sql.timestampType"


class SparkWindows:
    """A session of Spark as an external system: each window is a DataFrame, which a function writes."""

    def __init__(self, session: Any, schema: "pa.Schema | None", write: Callable[[Any, StagedWindow], Any]) -> None:
        self._session = session
        self._schema = schema
        self._write = write

    def prepare(self, writer: str) -> None:  # noqa: ARG002 - `write` receives its name with each window
        """Let Spark refuse columns that it cannot hold."""
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        if self._schema is not None:
            self._frame_of(pa.table({column.name: pa.nulls(1, column.type) for column in self._schema}))

    def apply(self, window: StagedWindow) -> None:
        import pyarrow as pa  # noqa: PLC0415 - as above

        rows = pieces(window, f"window {window.window_id}", described(window).schema)
        self._write(self._frame_of(pa.concat_tables(rows)), window)

    def close(self) -> None:
        """Do nothing: the session is the author's."""

    def _frame_of(self, rows: "pa.Table") -> Any:
        # datetimes without a time zone stay so; by default, Spark gives them that of the session
        with setting(self._session, _NAIVE, "TIMESTAMP_NTZ"):
            return self._session.createDataFrame(rows)


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
    staged = ExternalOutput(lambda sink: SparkWindows(sink.session.value, sink.schema_known, sink.write_window))

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
