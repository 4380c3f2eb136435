"""Validating items against a type: a pydantic model, a dataclass, or any other type that pydantic validates."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Generic

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypeVar

from dagkit import Batch, InputPort, OutputPort, Rows
from dagkit_operators.contexts.line_columns import picked_of
from dagkit_operators.payloads import VALUE, Record
from dagkit_operators.records.rejecting import ItemsOf, RejectingRowOperator
from dagkit_operators.values.masks import only
from dagkit_operators.values.processed import column_of, processed_field, processed_value, with_value

S = TypeVar("S", default=Any)
T = TypeVar("T", default=Any)


class Validate(RejectingRowOperator, Generic[S, T]):
    """Makes a typed item of each item that is valid, and rejects the others with the reason.

    A text or bytes are parsed as JSON. Anything else, such as a dict or an object with attributes, is validated as it
    is. The value of a record becomes a value of the type; so does any other item as a whole, unless `on` names a field.
    """

    kind = "records.validate/1"
    rows = Rows.KEPT
    stateless = True
    input = InputPort[S]()
    output = OutputPort[T](main=True)

    model: type[Any] = Field(default=...)
    """A pydantic model, a dataclass, or another class that pydantic validates."""
    on: str | None = None
    """The field that is validated; None: the value of a record, any other item as a whole."""

    def __init__(self, model: type[T] | None = None, /, **properties: Any) -> None:
        super().__init__(**({} if model is None else {"model": model}), **properties)

    def sent_payload(self, port: str, received: Mapping[str, Any]) -> Any:
        return with_value(received.get("input"), self.model, self.on) if port == "output" else None

    def process(self, item: Any) -> Iterator[Any]:
        value = processed_value(item, self.on)
        try:
            valid = self._validated(value)
        except ValueError as fault:
            self.reject(item, value, fault)
            return
        field = self.on or (VALUE if isinstance(item, Record) else None)
        yield valid if field is None else replace(item, **{field: valid})

    def process_batch(self, batch: Batch[Any]) -> Batch[Any]:
        if not len(batch):
            return batch
        field = processed_field(batch, self.on)
        column = column_of(batch, field)
        valid, taken = self.tried(self._validated, column, ItemsOf(batch))
        values = picked_of(column, valid, taken)
        if field is None:
            return Batch.of_column(values)
        return (batch if len(taken) == len(batch) else only(batch, taken)).replaced(field, values)

    def _validated(self, value: Any) -> Any:
        model: Any = self.model
        validator = _validator(model)
        try:
            if isinstance(value, str | bytes):
                return validator.validate_json(value)
            return validator.validate_python(value, from_attributes=True)
        except ValidationError as invalid:
            raise ValueError(_reason(invalid)) from invalid


@lru_cache(maxsize=64)
def _validator(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _reason(invalid: ValidationError) -> str:
    """All faults in one line, each with the path of its field."""
    faults = invalid.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}".removeprefix(": ") for fault in faults)
