"""Reading the rows of queries."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from pydantic import PositiveInt, PrivateAttr, field_validator
from typing_extensions import TypeVar

from dagkit import Batch, Context, InputPort, OutputPort, SplittableOperator, Unavailable
from dagkit.ranges import OFFSET_INFINITY, OFFSET_UNKNOWN, OffsetRange, RestrictionTracker
from dagkit_operators.following import FollowsBacklog
from dagkit_operators.formats.rows import Rows
from dagkit_operators.looks import defer_unanswered, outage_of
from dagkit_operators.sql.client import SqlClient
from dagkit_operators.sql.connection import Connection, quoted_name
from dagkit_operators.sql.queries import KeySteps, SqlQuery, SqlRange
from dagkit_operators.tables.storage import table_mismatched
from dagkit_operators.values.record_types import maker_of
from dagkit_operators.writing.arrow_records import check_columns, schema_of

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)


class SqlReader(SqlClient, FollowsBacklog, SplittableOperator[SqlQuery], Generic[T]):
    """Reads the rows of each query that arrives: of the ranges of a `SqlSplitter`, or of any other `SqlQuery`.

    A query with a key is read in pages, or in the steps of its range, in the order of the key, and divided between the
    partitions. Each page is a transaction of its own. If the database is away, the reader waits until it is back.
    """

    kind = "sql.reader/1"
    stateless = True
    position_unit = "position"  # values of a key, or steps: rows may have the same, and values may be missing
    queries = InputPort(SqlQuery, main=True)
    records = OutputPort[T](main=True)

    record_type: type | None = None
    """A dataclass, pydantic model, TypedDict or NamedTuple, whose fields are the columns; None: records are dicts."""
    page_rows: PositiveInt = 10_000
    """The most rows that are read and claimed at a time."""

    _home: str = PrivateAttr(default="")

    @field_validator("record_type")
    @classmethod
    def _has_columns(cls, record_type: type | None) -> type | None:
        return check_columns(record_type)

    def sent_payload(self, port: str, received: Mapping[str, Any]) -> Any:  # noqa: ARG002 - as declared
        return self.record_type if port == "records" else None

    def setup(self, context: Context) -> None:
        self._home = context.home

    def initial_restriction(self, element: SqlQuery) -> OffsetRange:
        """The keys of a query up to the highest one that there is now; a query without a key is one step."""
        if element.end != OFFSET_INFINITY:
            return OffsetRange(element.start, element.end)
        if element.key is None:
            return OffsetRange(0, 1)
        outage = outage_of(self.database)
        try:
            with self.connect(self._home) as connection:
                highest = _highest(element, element.key, connection)
        except Unavailable as error:
            outage.failed(error.problem)
            return OffsetRange(element.start, OFFSET_UNKNOWN)  # they are read up to the highest key
        outage.is_over()
        return OffsetRange(element.start, max(element.start, highest) + 1)

    def process(self, element: SqlQuery, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[Batch[Any]]:
        outage = outage_of(self.database)
        try:
            with self.connect(self._home) as connection:
                if isinstance(element, SqlRange) and element.steps is not None:
                    yield from self._steps(element, element.steps, connection, tracker)
                else:
                    reading = self._whole if element.key is None else self._pages
                    yield from reading(element, connection, tracker)
            outage.is_over()
        except Unavailable as error:
            defer_unanswered(tracker, outage, error.problem)

    def _whole(
        self, element: SqlQuery, connection: Connection, tracker: RestrictionTracker[OffsetRange, int]
    ) -> Iterator[Batch[Any]]:
        """Read a query without a key."""
        rows = connection.table(element.statement)
        if tracker.try_claim(0):
            yield from self._batches(rows, None)

    def _steps(
        self,
        element: SqlRange,
        steps: KeySteps,
        connection: Connection,
        tracker: RestrictionTracker[OffsetRange, int],
    ) -> Iterator[Batch[Any]]:
        """Read the steps of a range, each at once."""
        position = tracker.current_restriction().start
        while position < tracker.current_restriction().stop:
            rows = connection.table(steps.rows(element.statement, position - element.start))
            # After the database has answered: a step that is claimed must be read.
            if not tracker.try_claim(position):
                return
            yield from self._batches(rows, [position] * rows.num_rows)
            position += 1

    def _pages(
        self, element: SqlQuery, connection: Connection, tracker: RestrictionTracker[OffsetRange, int]
    ) -> Iterator[Batch[Any]]:
        """Read a query in pages. The rows of one key are read together: a key is claimed once."""
        assert element.key is not None, "its rows have an order"
        if element.end == OFFSET_INFINITY:
            # The database may have been away when the query arrived, so the type of the key was not checked.
            _highest(element, element.key, connection)
        position = tracker.current_restriction().start
        while position < (stop := tracker.current_restriction().stop):
            rows, is_last = self._page(element, connection, position, stop)
            keys = rows.column(element.key).to_pylist()
            distinct = list(dict.fromkeys(keys))
            granted = tracker.claim_many(distinct)
            count = len(keys) if granted == len(distinct) else keys.index(distinct[granted])
            if count:
                yield from self._batches(rows.slice(0, count), keys[:count])
            if granted < len(distinct):
                return
            if is_last:
                last = tracker.current_restriction().stop - 1
                # The keys from there up to the end have no rows.
                if last > (keys[-1] if keys else position - 1):
                    tracker.try_claim(last)
                return
            position = keys[-1] + 1

    def _page(self, element: SqlQuery, connection: Connection, start: int, stop: int) -> "tuple[pa.Table, bool]":
        """The next rows in the order of the key, those with one key together, and whether they are the last."""
        assert element.key is not None, "as above"
        key, rows = quoted_name(element.key), f"SELECT * FROM ({element.statement}) AS rows_found"
        page = connection.table(
            f"{rows} WHERE {key} >= {start} AND {key} < {stop} ORDER BY {key} LIMIT {self.page_rows}"
        )
        if page.num_rows < self.page_rows:
            return page, True
        keys = page.column(element.key).to_pylist()
        # More rows may have this key than a page has rows. A key is claimed once, so all of them are read.
        if keys[0] == keys[-1]:
            return connection.table(f"{rows} WHERE {key} = {keys[0]}"), False
        # The page may end among the rows of its last key, so that the next one begins with this key.
        return page.slice(0, keys.index(keys[-1])), False

    def _batches(self, rows: "pa.Table", keys: Sequence[int] | None) -> Iterator[Batch[Any]]:
        """The records of rows, which lie at these keys."""
        shaped = rows if self.record_type is None else _fitted(rows, schema_of(self.record_type))
        # One batch, since `keys` are the places of all rows.
        for batch in shaped.combine_chunks().to_batches():
            yield Rows(batch, maker_of(self.record_type), lambda: keys).as_batch()


def _highest(element: SqlQuery, key: str, connection: Connection) -> int:
    """The highest key of a query, -1 without rows. Raise `table-mismatched` unless all keys are integers, 0 or more."""
    name, rows = quoted_name(key), f"FROM ({element.statement}) AS rows_found"
    ((lowest, highest),) = connection.execute(f"SELECT min({name}), max({name}) {rows}")
    if highest is not None and not isinstance(highest, int):
        raise table_mismatched(
            f"{key} is {highest!r} in a row of {element.statement}, and the key of a query is an integer",
            "leave out the key, so that the query is read in one step, or let SqlSplitter draw ranges of it",
        )
    # Pages would leave out these rows without a report.
    has_null = connection.execute(f"SELECT 1 {rows} WHERE {name} IS NULL LIMIT 1")
    if has_null or (lowest is not None and lowest < 0 and not element.start):
        found = "NULL" if has_null else lowest
        raise table_mismatched(
            f"{key} is {found} in a row of {element.statement}, which no range of keys contains",
            f"leave out the key, so that the query is read in one step, or these rows: WHERE {key} >= 0",
        )
    return -1 if highest is None else highest


def _fitted(rows: "pa.Table", wanted: "pa.Schema") -> "pa.Table":
    """The columns of a record type. Raise `table-mismatched` if a query has no such column, or one of another type."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    missing = [name for name in wanted.names if name not in rows.column_names]
    if missing:
        raise table_mismatched(f"the query has no column {missing[0]}; its columns are {', '.join(rows.column_names)}")
    columns = []
    for field in wanted:
        try:
            columns.append(rows.column(field.name).cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            kind = rows.column(field.name).type
            problem = f"the column {field.name} of the query is of type {kind}, and records hold {field.type}: {error}"
            raise table_mismatched(problem) from error
    return pa.Table.from_arrays(columns, schema=wanted)
