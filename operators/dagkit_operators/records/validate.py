"""Validating items against a type: a pydantic model, a dataclass, or any other type that pydantic validates."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Generic

from pydantic import Field, TypeAdapter
from typing_extensions import TypeVar

from dagkit import Batch, InputPort, Lines, OutputPort, RowOperator, Rows, auto_metric
from dagkit_operators.contexts.line_columns import picked_of
from dagkit_operators.native.json_members import MemberNames
from dagkit_operators.payloads import VALUE, Record
from dagkit_operators.records.rejecting import ItemsOf, Rejecting
from dagkit_operators.values.masks import only
from dagkit_operators.values.processed import column_of, processed_field, processed_value, with_value
from dagkit_operators.values.record_types import PROBLEM, Ignored, IgnoresFields, names_of, names_within, other_members

S = TypeVar("S", default=Any)
T = TypeVar("T", default=Any)


class Validate(Rejecting, RowOperator, IgnoresFields, Generic[S, T]):
    """Makes a typed item of each item that is valid, and rejects the others with the reason.

    A text or bytes are parsed as JSON. Anything else, such as a dict or an object with attributes, is validated as it
    is. The value of a record becomes a value of the type; so does any other item as a whole, unless `on` names a field.
    Fields that the type does not name are left out and counted, unless the type is configured to ignore them.
    """

    kind = "records.validate/1"
    rows = Rows.KEPT
    stateless = True
    input = InputPort[S]()
    output = OutputPort[T](main=True)
    fields_ignored = auto_metric(
        0,
        warning=f"{PROBLEM}\n  help: add the fields to the model; to leave out all other fields, without a count, set "
        "extra to 'ignore' in its configuration",
    )
    """Values of fields that the model does not name; a null is no value."""

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
        self._note_others([value])
        field = self.on or (VALUE if isinstance(item, Record) else None)
        yield valid if field is None else replace(item, **{field: valid})

    def process_batch(self, batch: Batch[Any]) -> Batch[Any]:
        if not len(batch):
            return batch
        field = processed_field(batch, self.on)
        column = column_of(batch, field)
        valid, taken = self.tried(self._validated, column, ItemsOf(batch))
        is_whole = len(taken) == len(batch)
        if is_whole and isinstance(column, Lines):
            self._note_members(column.content, column.values)
        else:
            given = column.values()
            self._note_others(given if is_whole else [given[index] for index in taken])
        values = picked_of(column, valid, taken)
        if field is None:
            return Batch.of_column(values)
        return (batch if is_whole else only(batch, taken)).replaced(field, values)

    @property
    def _names(self) -> MemberNames | None:
        model: Any = self.model
        return _names_in(model)

    def _note_others(self, values: Sequence[Any]) -> None:
        """Count the fields of valid values that the model does not name."""
        known = self._names
        if known is None:
            return
        for kind, some in _by_kind(values):
            if issubclass(kind, str | bytes):
                self._note_members(_joined(some), partial(list, some))
            elif issubclass(kind, dict):
                others: list[str] = []
                known.add_others(list(some), others)
                self._note(others)
            elif beyond := _fields_beyond(kind, known.known):
                self._note([name for value in some for name in beyond if getattr(value, name, None) is not None])

    def _note_members(self, content: bytes | memoryview, texts: Callable[[], Sequence[str | bytes]]) -> None:
        """Count the members of valid JSON objects that the model does not name. In an array, values have no names."""
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        known = self._names
        if known is not None and not issubclass(self.model, tuple):
            self.note_ignored(other_members(np.frombuffer(content, np.uint8), texts, known))

    def _note(self, names: Sequence[str]) -> None:
        self.note_ignored(Ignored(len(names), sorted({*names})))

    def _validated(self, value: Any) -> Any:
        model: Any = self.model
        validator = _validator(model)
        if isinstance(value, str | bytes):
            return validator.validate_json(value)
        return validator.validate_python(value, from_attributes=True)


@lru_cache(maxsize=64)
def _validator(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


@lru_cache(maxsize=64)
def _names_in(model: Any) -> MemberNames | None:
    """The names that a model looks for; None if it has no fields, takes every name, or leaves out others on purpose."""
    try:
        return names_within(model)
    except TypeError:
        return None


def _by_kind(values: Sequence[Any]) -> Iterable[tuple[Any, Sequence[Any]]]:
    """Values by their class."""
    kinds = {*map(type, values)}
    return ((kind, values if len(kinds) == 1 else [value for value in values if type(value) is kind]) for kind in kinds)


def _joined(texts: Sequence[Any]) -> bytes:
    return b"\n".join(texts) if isinstance(texts[0], bytes) else "\n".join(texts).encode()


@lru_cache(maxsize=256)
def _fields_beyond(kind: Any, known: frozenset[str]) -> Sequence[str]:
    """The fields of a class that are not known; none if it does not name its fields."""
    try:
        return [name for name in names_of(kind) if name not in known]
    except TypeError:
        return ()
