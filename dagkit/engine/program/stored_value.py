"""The form of values that the engine stores in the ledger and in the application's folder."""

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
        fields, owners = dict(update or {}), _owners(type(self))
        own: dict[str, dict[str, Any]] = {}
        for field in update or ():
            if field in owners:
                own.setdefault(owners[field], {})[field] = fields.pop(field)
        for name, changed in own.items():
            fields[name] = fields.get(name, getattr(self, name)).model_copy(update=changed)
        return super().model_copy(update=fields, deep=deep)

    if not TYPE_CHECKING:  # for authors, who read `launched.status.left_out` as the status file shows it

        def __getattr__(self, name: str) -> Any:
            group = _owners(type(self)).get(name)
            return super().__getattr__(name) if group is None else getattr(self.__dict__[group], name)


@cache
def _groups(kind: type[BaseModel]) -> Mapping[str, type[Group]]:
    """The fields of a document that are groups."""
    types = {name: field.annotation for name, field in kind.model_fields.items()}
    return {name: each for name, each in types.items() if isinstance(each, type) and issubclass(each, Group)}


@cache
def _owners(kind: type[BaseModel]) -> Mapping[str, str]:
    """The group of each field that stands in one."""
    return {field: name for name, group in _groups(kind).items() for field in group.model_fields}
