"""Dividing a stream: each item goes to one of several outputs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Self

from pydantic import Field, model_validator
from typing_extensions import TypeVar

from dagkit import Batch, InputPort, OutputPort, Rows
from dagkit.api.ports import Outlet, output_ports
from dagkit.errors import did_you_mean
from dagkit_operators.records.rejecting import ItemsOf, Rejecting
from dagkit_operators.values.masks import mask_of, only
from dagkit_operators.values.processed import UnaryFunction, processed_column, processed_value

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)


class _Branching(Rejecting, Generic[T]):
    """Sends each item to the output of the first predicate that holds, else to the last output."""

    rows = Rows.KEPT
    input = InputPort[T]()

    on: str | None = None
    """The field that is tested; None: the value of a record, any other item as a whole."""

    def cases(self) -> Sequence[tuple[Outlet[T], Callable[[Any], Any]]]:
        """The outputs and their predicates, in the order in which they are tested."""
        raise NotImplementedError

    def rest(self) -> Outlet[T]:
        """The output of the items for which no predicate holds."""
        raise NotImplementedError

    def process(self, item: T) -> None:
        value = processed_value(item, self.on)
        try:
            chosen = next((outlet for outlet, holds in self.cases() if holds(value)), None)
        except ValueError as fault:
            self.reject(item, value, fault)
            return
        (self.rest() if chosen is None else chosen).emit(item)

    def process_batch(self, batch: Batch[T]) -> None:
        """Test the whole batch with one predicate after the other; each tests what is left by those before it."""
        import pyarrow.compute as pc  # noqa: PLC0415 - not loaded when only compiling

        for outlet, predicate in self.cases():
            if not len(batch):
                return
            batch, mask = self._tested(batch, predicate)
            outlet.emit_batch(batch.where(mask))
            batch = batch.where(pc.invert(mask))
        if len(batch):
            self.rest().emit_batch(batch)

    def _tested(self, batch: Batch[T], predicate: Callable[[Any], Any]) -> "tuple[Batch[T], pa.BooleanArray]":
        """The items that were not rejected, and for which of them the predicate holds."""
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        column = processed_column(batch, self.on)
        # A ValueError does not show which item caused it: the lines after this block find it.
        with suppress(ValueError):
            return batch, mask_of(predicate, column)
        results, taken = self.tried(predicate, column, ItemsOf(batch))
        return only(batch, taken), pa.array([bool(result) for result in results], pa.bool_())


class Branch(_Branching[T], Generic[T]):
    """Sends the items for which the predicate holds to `matched`, and all others to `unmatched`."""

    kind = "records.branch/1"
    matched = OutputPort[T]()
    unmatched = OutputPort[T]()

    predicate: UnaryFunction = Field(default=..., kw_only=False)
    """A function of a value, or an expression."""

    def cases(self) -> Sequence[tuple[Outlet[T], Callable[[Any], Any]]]:
        return [(self.matched, self.predicate)]

    def rest(self) -> Outlet[T]:
        return self.unmatched


class BranchBy(_Branching[T], Generic[T]):
    """Sends each item to the first output whose predicate holds, and all others to `otherwise`.

    A subclass declares an output for each predicate:

        class BySize(BranchBy[int]):
            kind = "example.by-size/1"
            small = OutputPort(int)
            large = OutputPort(int)

        BySize(predicates={"small": lambda size: size < 10, "large": lambda size: size > 1000})
    """

    kind = "records.branch-by/1"
    otherwise = OutputPort[T]()

    predicates: Mapping[str, UnaryFunction] = Field(default=..., kw_only=False)
    """A predicate for each output, in the order in which they are tested."""

    @model_validator(mode="after")
    def _names_outputs(self) -> Self:
        known = [name for name in output_ports(type(self)) if name not in output_ports(BranchBy)]
        unknown = next((name for name in self.predicates if name not in known), None)
        if unknown is not None:
            raise ValueError(f"{type(self).__name__} declares no output {unknown!r}: {did_you_mean(unknown, known)}")
        return self

    def cases(self) -> Sequence[tuple[Outlet[T], Callable[[Any], Any]]]:
        return [(getattr(self, name), predicate) for name, predicate in self.predicates.items()]

    def rest(self) -> Outlet[T]:
        return self.otherwise
