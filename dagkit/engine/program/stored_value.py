"""The form of what the engine stores in the ledger and in the application's folder."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer, model_validator


class StoredValue(BaseModel):
    """A frozen value. When it is read, fields that it does not declare are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Group(BaseModel):
    """Fields of a document that belong together. In its JSON they stand among the other fields."""

    model_config = ConfigDict(frozen=True)


class Grouped(BaseModel):
    """A document with groups of fields. It is created, copied and written as if their fields were its own."""

    @model_validator(mode="before")
    @classmethod
    def _group(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping):
            return fields
        grouped = dict(fields)
        for name, kind in _groups(cls).items():
            own = {field: grouped.pop(field) for field in kind.model_fields if field in grouped}
            if own or cls.model_fields[name].is_required():
                grouped.setdefault(name, own)
        return grouped

    @model_serializer(mode="wrap")
    def _flatten(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        groups = _groups(type(self))
        flat: dict[str, Any] = {}
        for name, value in write(self).items():
            flat.update(value if name in groups else {name: value})
        return flat

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values of these fields, which are not checked."""
        fields = dict(update or {})
        for name, kind in _groups(type(self)).items():
            own = {field: fields.pop(field) for field in kind.model_fields if field in fields}
            if own:
                fields[name] = fields.get(name, getattr(self, name)).model_copy(update=own)
        return super().model_copy(update=fields, deep=deep)

    if not TYPE_CHECKING:  # for authors, who read `launched.status.left_out` as the status file shows it

        def __getattr__(self, name: str) -> Any:
            for group, kind in _groups(type(self)).items():
                if name in kind.model_fields:
                    return getattr(self.__dict__[group], name)
            return super().__getattr__(name)


@cache
def _groups(kind: type[BaseModel]) -> Mapping[str, type[Group]]:
    """The fields of a document that are groups."""
    types = {name: field.annotation for name, field in kind.model_fields.items()}
    return {name: each for name, each in types.items() if isinstance(each, type) and issubclass(each, Group)}
