"""Elements read in a task of Spark, as rows: the items of the reader's main output."""

import dataclasses
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pyspark.sql.types import StructType

from dagkit.api.operators import main_outlet, sending
from dagkit.api.running import Context
from dagkit.api.work import SplittableOperator
from dagkit.dataframes.file_contents import row_unfit
from dagkit.engine.worker.instances import Receiver, bind_output, live
from dagkit.engine.worker.lifecycle import Life
from dagkit.errors import RunFailure
from dagkit.schema.batch import Batch
from dagkit.schema.columns import Column, Listed

if TYPE_CHECKING:
    import pyarrow as pa

_VALUE = "value"


def _element_unfinished(reader: str, element: Any) -> RunFailure:
    """A reader left a part of an element for later, and a micro-batch of Spark has no later."""
    return RunFailure(
        f"{reader} read a part of {element!r:.80} and deferred the rest, or the element has no end",
        "use a reader whose elements have an end, or launch an application with this reader",
        code="element-unfinished",
    )


def rows_of(
    configured: SplittableOperator[Any, Any], elements: Sequence[Any], schema: StructType
) -> Iterator["pa.RecordBatch"]:
    """Read the elements, and yield the items of the main output as batches of the schema."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - on workers only

    columns = to_arrow_schema(schema)
    reader = live(configured, {})
    assert isinstance(reader, SplittableOperator), "the options name a splittable operator"
    batches: deque[pa.RecordBatch] = deque()
    outlet = main_outlet(reader)
    assert outlet is not None, "a reader yields items"
    element: Any = None

    def take(batch: Batch[Any]) -> None:
        batches.append(_arrow(batch, columns, str(element)))

    bind_output(reader, outlet.port.name, [Receiver(lambda item: take(Batch.of([item])), take)])
    life = Life(reader)
    try:
        life.set_up(Context(application="dagkit", operator="Reader"))
        life.begin(1)
        for element in elements:
            for _ in _work(reader, element):
                while batches:
                    yield batches.popleft()
        # An operator may send items at the end of its window.
        life.end(1, last=True)
        yield from batches
    finally:
        life.abandon(1)


def _work(reader: SplittableOperator[Any, Any], element: Any) -> Iterator[None]:
    """Process one element to its end; yield after each item or batch."""
    restriction = reader.initial_restriction(element)
    tracker = reader.tracker(element, restriction)
    if not tracker.is_bounded():
        raise _element_unfinished(type(reader).__name__, element)
    send = sending(reader, "process")
    for item in reader.process(element, tracker) or ():
        send(item if isinstance(item, Batch) else iter((item,)))
        yield
    tracker.check_done()
    if tracker.deferred() is not None:
        raise _element_unfinished(type(reader).__name__, element)
    # For what the operator sent after its last item.
    yield


def _arrow(batch: Batch[Any], schema: "pa.Schema", place: str) -> "pa.RecordBatch":
    """The items of a batch as rows: each column is a field of the item, or of its `value`, or is the value itself."""
    import pyarrow as pa  # noqa: PLC0415 - on workers only

    try:
        if set(schema.names) <= set(batch.columns):
            arrays = [batch.column(name).array() for name in schema.names]
        else:
            arrays = _fields(_values(batch), schema)
        return pa.RecordBatch.from_arrays(
            [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)], schema=schema
        )
    except (pa.ArrowException, AttributeError, KeyError, TypeError, UnicodeError) as error:
        raise row_unfit(place, error) from error


def _values(batch: Batch[Any]) -> Column:
    """The values of the items, which are the items themselves if these have no field `value`."""
    if _VALUE in batch.columns:
        return batch.column(_VALUE)
    return Listed([getattr(item, _VALUE, item) for item in batch.items()])


def _fields(values: Column, schema: "pa.Schema") -> "list[pa.Array]":
    import pyarrow as pa  # noqa: PLC0415 - as above

    if isinstance(values, Listed):
        listed = [_plain(value) for value in values.values()]
        if listed and isinstance(listed[0], Mapping):
            return [pa.array([row[field.name] for row in listed], field.type) for field in schema]
        values = Listed(listed)
    array = values.array()
    if pa.types.is_struct(array.type):
        return [array.field(name) for name in schema.names]
    if len(schema) != 1:
        raise TypeError(f"one value, and the columns {', '.join(schema.names)}")
    return [array]


def _plain(value: Any) -> Any:
    """A record as a mapping; any other value unchanged."""
    if isinstance(value, BaseModel):
        return value.model_dump()
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
