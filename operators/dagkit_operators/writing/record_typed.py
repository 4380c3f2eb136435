"""Operators that write the fields of records as columns: the type of the records."""

from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import field_validator

from dagkit import Operator
from dagkit.schema import is_known, spelled
from dagkit_operators.payloads import Record
from dagkit_operators.values.record_types import fields_of
from dagkit_operators.writing.arrow_records import check_columns


class RecordTyped(Operator):
    """Writes records of one type. If the type is not set, it is that of the stream."""

    record_type: type | None = None
    """A dataclass, pydantic model, TypedDict or NamedTuple, whose fields are the columns; None: that of the stream.

    If the stream sends Arrow record batches or tables, their columns are written.
    """

    @field_validator("record_type")
    @classmethod
    def _has_columns(cls, record_type: type | None) -> type | None:
        return check_columns(record_type)

    def implied_properties(self, received: Mapping[str, Any]) -> Mapping[str, Any]:
        value = _value_of(received.get("input", Any))
        return {"record_type": value} if self.record_type is None and has_fields(value) else {}

    def refused_payload(self, port: str, payload: Any) -> str | None:  # noqa: ARG002 - there is one input
        value = _value_of(payload)
        if self.record_type is not None or any(map(_may_be_arrow, _members(value))):
            return None
        return (
            f"{spelled(value)} has no fields that could be columns: set record_type to a class that has, "
            "or put a Map before it that makes records"
        )


def _value_of(payload: Any) -> Any:
    """The type of what is written of an item: the value of a record, any other item as a whole."""
    return get_args(payload)[0] if get_origin(payload) is Record else payload


def _members(payload: Any) -> tuple[Any, ...]:
    return get_args(payload) if get_origin(payload) in (Union, UnionType) else (payload,)


def has_fields(payload: Any) -> bool:
    """Whether a type is a class of records: a dataclass, a pydantic model, a TypedDict or a NamedTuple."""
    try:
        return bool(fields_of(payload))
    except TypeError:
        return False


def _may_be_arrow(payload: Any) -> bool:
    """Whether items of a type may be Arrow record batches or tables, found without loading Arrow."""
    return not is_known(payload) or getattr(payload, "__module__", "").partition(".")[0] == "pyarrow"
