"""How a schema may change: optional columns may be added, columns may move; none is removed or changes its type."""

from collections.abc import Iterator, Mapping
from typing import Any

from dagkit.ledger.format.events import DataField, DataSchema


def column_type(given: str | Mapping[str, Any]) -> Any:
    """The type in its object form, whichever of the two notations was used."""
    if isinstance(given, str):
        return {"kind": given}
    return {
        name: (
            column_type(value)
            if name in ("inner", "itemType", "keyType", "valueType")
            else [_field(f) for f in value]
            if name == "fields"
            else value
        )
        for name, value in given.items()
    }


def _field(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": given["name"], "type": column_type(given["type"])}


def is_optional(column: DataField) -> bool:
    """Whether old records may lack the column."""
    return bool(column_type(column.type)["kind"] in ("Option", "Null"))


def breaches(old: DataSchema, new: DataSchema) -> Iterator[str]:
    """The changes that old readers or old records do not support."""
    before = {column.name: column for column in old.fields}
    after = {column.name: column for column in new.fields}
    for name, column in before.items():
        if name not in after:
            yield f"column {name!r} is missing"
        elif column_type(column.type) != column_type(after[name].type):
            yield f"column {name!r} changes its type from {column_type(column.type)} to {column_type(after[name].type)}"
    for name, column in after.items():
        if name not in before and not is_optional(column):
            yield f"column {name!r} is new but not optional"
