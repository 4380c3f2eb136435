"""Types of records: the columns that they have, and how a record is made of the values of its columns."""

import dataclasses
import datetime as dt
import decimal
import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from dagkit import Operator, auto_metric
from dagkit.schema.objects import objects_of, whole_by_fields
from dagkit_operators.native.json_members import MemberNames, MemberPairs, others_of
from dagkit_operators.payloads import why_invalid

if TYPE_CHECKING:
    import pyarrow as pa
    from pydantic import TypeAdapter

    from dagkit_operators.native.bytewise import Bytes


_NAMES: Final[Mapping[Any, str]] = {
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
    bytes: "binary",
    dt.date: "date32",
    dt.datetime: "timestamp[us]",
}
"""The Arrow types of plain values."""
_DIGITS, _PLACES = 38, 9
"""The digits of a Decimal in all, and after the point."""


@dataclasses.dataclass(frozen=True, slots=True)
class FieldType:
    """A field of a record type."""

    hint: Any
    is_optional: bool
    """Whether the field may be None."""


@lru_cache(maxsize=256)
def fields_of(record_type: type) -> Mapping[str, FieldType]:
    """The fields of a dataclass, a pydantic model, a TypedDict or a NamedTuple. Raise TypeError for any other class."""
    names, hints = names_of(record_type), get_type_hints(record_type)
    return {name: plain_hint(hints[name]) for name in names}


def names_of(record_type: type) -> Sequence[str]:
    """The names of the fields of a record type. Raise TypeError for a class of another kind."""
    from pydantic import BaseModel  # noqa: PLC0415 - beside the type that it tests

    # is_typeddict below accepts any object.
    if not isinstance(record_type, type):
        raise TypeError(f"{record_type!r} is not a class")
    if issubclass(record_type, BaseModel):
        return list(record_type.model_fields)
    if dataclasses.is_dataclass(record_type):
        return [field.name for field in dataclasses.fields(record_type) if field.init]
    if is_typeddict(record_type) or (issubclass(record_type, tuple) and hasattr(record_type, "_fields")):
        return list(get_type_hints(record_type))
    kinds = "a dataclass, a pydantic model, a TypedDict or a NamedTuple"
    raise TypeError(f"{record_type.__name__} has no fields; use {kinds}")


def has_fields(payload: Any) -> bool:
    """Whether a type is a class of records: a dataclass, a pydantic model, a TypedDict or a NamedTuple."""
    try:
        return bool(fields_of(payload))
    except TypeError:
        return False


@lru_cache(maxsize=256)
def names_read(record_type: type | None) -> frozenset[str] | None:
    """The names under which a record type looks for its fields; None if it takes every name, or leaves out the others.

    A pydantic model leaves them out on purpose if its configuration sets `extra` to `ignore`.
    """
    from pydantic import RootModel  # noqa: PLC0415 - as above

    if record_type is None or _extra(record_type) in ("allow", "ignore") or issubclass(record_type, RootModel):
        return None
    return frozenset(key for name in names_of(record_type) for key in _keys_of(record_type, name))


def _keys_of(record_type: type, name: str) -> Iterator[str]:
    """The names under which a record type looks for one of its fields."""
    yield name
    field = getattr(record_type, "model_fields", {}).get(name)
    if field is not None:
        aliases = [field.alias, *getattr(field.validation_alias, "choices", [field.validation_alias])]
        yield from (getattr(alias, "path", [alias])[0] for alias in aliases if alias is not None)


@lru_cache(maxsize=256)
def names_within(record_type: type | None, path: str = "", around: tuple[type, ...] = ()) -> MemberNames | None:
    """The names of a record type, and of those within it; None if it takes every name, or leaves out the others.

    `around` are the types that it lies in: a type that contains itself is not followed further.
    """
    known = names_read(record_type)
    if known is None or record_type is None:
        return None
    try:
        hints = get_type_hints(record_type)
    # An annotation may name what is imported for type checkers only.
    except NameError:
        return MemberNames(known, {}, path)
    within: dict[str, MemberNames] = {}
    for name in names_of(record_type):
        held = _record_in(hints.get(name))
        if held is not None and held is not record_type and held not in around:
            names = names_within(held, f"{path}{name}.", (*around, record_type))
            within |= dict.fromkeys(_keys_of(record_type, name), names) if names is not None else {}
    return MemberNames(known, within, path)


def _record_in(hint: Any) -> type | None:
    """The record type that a field holds, alone or in a list; None if it holds none, or a tuple."""
    hint = plain_hint(hint).hint
    if get_origin(hint) in (list, Sequence):
        hint = plain_hint(get_args(hint)[0]).hint
    if not isinstance(hint, type) or issubclass(hint, tuple):
        return None
    try:
        names_of(hint)
    except TypeError:
        return None
    return hint


def with_nulls(row: Any, record_type: type) -> Any:
    """An object of JSON with None for each field that may be None, is missing, and has no default; also in records."""
    if not isinstance(row, dict):
        return row
    nulls, within = _nulls_of(record_type)
    filled = {**{keys[-1]: None for keys in nulls if not any(key in row for key in keys)}, **row}
    for name, held in within.items():
        value = filled.get(name)
        if isinstance(value, list):
            filled[name] = [with_nulls(item, held) for item in value]
        elif isinstance(value, dict):
            filled[name] = with_nulls(value, held)
    return filled


@lru_cache(maxsize=256)
def _nulls_of(record_type: type) -> tuple[Sequence[Sequence[str]], Mapping[str, type]]:
    """The keys of each field that may be None and has no default, and the records within the record by their keys."""
    nulls: list[Sequence[str]] = []
    within: dict[str, type] = {}
    for name, field in fields_of(record_type).items():
        keys = list(_keys_of(record_type, name))
        if field.is_optional and not _has_default(record_type, name):
            nulls.append(keys)
        held = _record_in(field.hint)
        if held is not None:
            within |= dict.fromkeys(keys, held)
    return nulls, within


def _has_default(record_type: type, name: str) -> bool:
    if dataclasses.is_dataclass(record_type):
        field = {field.name: field for field in dataclasses.fields(record_type)}[name]
        return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    model_fields = getattr(record_type, "model_fields", None)
    if model_fields is not None:
        return not model_fields[name].is_required()
    return name in getattr(record_type, "_field_defaults", ()) or name in getattr(record_type, "__optional_keys__", ())


def leaves_others(record_type: type | None) -> bool:
    """Whether a type is configured to ignore other fields than its own."""
    return record_type is not None and _extra(record_type) == "ignore"


def _extra(record_type: type) -> str | None:
    """The configured treatment of other fields than those of a type, as pydantic names it; None: it is not set."""
    config = getattr(record_type, "model_config", None) or getattr(record_type, "__pydantic_config__", {})
    return cast("str | None", config.get("extra"))


def checked_fields_of(record_type: type | None) -> Mapping[str, FieldType]:
    """The fields of a property's record type; empty without one. Raise ValueError if the class has none."""
    try:
        return {} if record_type is None else fields_of(record_type)
    except TypeError as fault:
        raise ValueError(str(fault)) from None


def plain_hint(hint: Any) -> FieldType:
    """A type without None, and whether it had it."""
    if get_origin(hint) in (Union, types.UnionType):
        members = [member for member in get_args(hint) if member is not types.NoneType]
        return FieldType(members[0] if len(members) == 1 else hint, len(members) < len(get_args(hint)))
    return FieldType(hint, hint is Any)


def arrow_type(hint: Any, *, holds_records: bool = False, around: Sequence[type] = ()) -> "pa.DataType | None":
    """The Arrow type whose values have this type in Python; None if there is none.

    With `holds_records`, a record has one, too: that of a struct. `around` are the record types in which the value
    lies: one that contains itself has no Arrow type.
    """
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    if hint in _NAMES:
        return pa.type_for_alias(_NAMES[hint])
    if hint is decimal.Decimal:
        return pa.decimal128(_DIGITS, _PLACES)
    if get_origin(hint) is list:
        item = arrow_type(plain_hint(get_args(hint)[0]).hint, holds_records=holds_records, around=around)
        return None if item is None else pa.list_(item)
    if not holds_records or hint in around or not has_fields(hint):
        return None
    members = []
    for name, field in fields_of(hint).items():
        kind = arrow_type(field.hint, holds_records=True, around=[*around, hint])
        if kind is None:
            return None
        members.append(pa.field(name, kind, field.is_optional))
    return pa.struct(members)


def maker_of(record_type: type | None) -> "Maker":
    """How records of a type are made; None: records are dicts."""
    if record_type is None or is_typeddict(record_type):
        return Maker(None, None)
    fields = fields_of(record_type)
    is_plain = all(arrow_type(field.hint) is not None for field in fields.values())
    # The values of a class with a constructor or a check of its own are not all that makes its objects.
    is_whole = whole_by_fields(record_type) == tuple(fields) or (issubclass(record_type, tuple) and is_plain)
    return Maker(record_type, None) if is_plain and is_whole else Maker(record_type, _validated(record_type))


def checked_maker_of(record_type: type | None) -> "Maker":
    """How records are made of values whose types are unknown: each value is checked. None: records are dicts."""
    return Maker(None, None) if record_type is None else Maker(record_type, _validated(record_type))


@lru_cache(maxsize=256)
def _adapter(record_type: type) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter  # noqa: PLC0415 - as above

    return TypeAdapter(record_type)


def _validated(record_type: type) -> Callable[[Mapping[str, Any]], Any]:
    return _adapter(record_type).validate_python


@dataclasses.dataclass(frozen=True, slots=True)
class Maker:
    """Makes records of the values of their columns."""

    made_by: Callable[..., Any] | None
    """Makes a record of its values, in the order of the columns; None: a record is a dict."""
    validated: Callable[[Mapping[str, Any]], Any] | None
    """Makes a record of a mapping, and may raise ValueError; None if no mapping of the right types is refused."""

    def of(self, names: Sequence[str], columns: Sequence[Sequence[Any]]) -> list[Any]:
        """The records of columns. None of them is validated."""
        if self.made_by is None:
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return objects_of(self.made_by, columns)

    def checked(self, rows: Sequence[Mapping[str, Any]]) -> "Iterator[tuple[Any, str | None]]":
        """Each row as a record, or None and why it is refused."""
        for row in rows:
            try:
                yield (row if self.validated is None else self.validated(row)), None
            except ValueError as fault:
                yield None, reason_of(fault)


def reason_of(fault: Exception) -> str:
    """Why a row is refused, in one line."""
    return (why_invalid(fault) if isinstance(fault, ValueError) else str(fault)).partition("\n")[0]


MOST_NAMES = 8
"""The most ignored fields that a metric names."""
PROBLEM = (
    "fields were not read, since the type of the records does not name them: {names_ignored} (values: "
    "{fields_ignored:,})"
)


class Ignored(NamedTuple):
    """Fields of records that were not read, since the type of the records does not name them."""

    values: int
    """How many values they had in the records; a null in JSON is none."""
    names: Sequence[str]
    """Some of the fields."""


def first_names(lists: Sequence[str]) -> str:
    """The first different names of several lists, whose names are separated by commas."""
    names = [*dict.fromkeys(name for names in lists for name in names.split(", ") if name)]
    return ", ".join([*names[:MOST_NAMES], *["…"] * (len(names) > MOST_NAMES)])


class IgnoresFields(Operator):
    """An operator that makes records of a type, and leaves out fields that the type does not name."""

    fields_ignored = auto_metric(
        0,
        warning=f"{PROBLEM}\n  help: add the fields to record_type or types to read them; to leave out all other "
        "fields, without a count, set columns",
    )
    """Values of fields that the type of the records does not name; in JSON, a null is no value."""
    names_ignored = auto_metric("", aggregators=[first_names])
    """Some of these fields."""

    def note_ignored(self, ignored: Ignored) -> None:
        """Count fields that were not read."""
        self.fields_ignored += ignored.values
        self.names_ignored = first_names([self.names_ignored, ", ".join(ignored.names)])


def other_members(data: "Bytes", texts: Callable[[], Iterable[str | bytes]], names: MemberNames) -> Ignored:
    """The members of JSON objects that are not named. `data` has all texts, which a parser has accepted."""
    others = others_of(data, names)
    if others is not None:
        return Ignored(*others)
    found: list[str] = []
    for text in texts():
        # Integers stay texts: Python refuses those of very many digits, and only names matter here.
        names.add_others(json.loads(text, object_pairs_hook=MemberPairs, parse_int=str), found)
    return Ignored(len(found), [*dict.fromkeys(found)])
