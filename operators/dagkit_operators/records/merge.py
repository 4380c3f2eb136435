"""Merging streams: the items of several streams leave by one output."""

from typing import Generic

from typing_extensions import TypeVar

from dagkit import Batch, InputPort, Operator, OutputPort, Rows

T = TypeVar("T")


class StreamMerger(Operator, Generic[T]):
    """Passes on the items of all its inputs. Items of one input keep their order; between inputs there is none.

    Two inputs must be connected, up to three more may be. For still more, connect one merger to another.
    """

    kind = "records.stream-merger/1"
    rows = Rows.KEPT
    stateless = True
    data1 = InputPort[T]()
    data2 = InputPort[T](keys_of="data1")
    data3 = InputPort[T](optional=True, keys_of="data1")
    data4 = InputPort[T](optional=True, keys_of="data1")
    data5 = InputPort[T](optional=True, keys_of="data1")
    out = OutputPort[T](main=True)

    @data1.process
    @data2.process
    @data3.process
    @data4.process
    @data5.process
    def process(self, item: T) -> None:
        self.out.emit(item)

    @data1.process_batch
    @data2.process_batch
    @data3.process_batch
    @data4.process_batch
    @data5.process_batch
    def process_batch(self, batch: Batch[T]) -> None:
        self.out.emit_batch(batch)
