"""Columns of members of JSON objects, in compiled C. Without it, and for other JSON, a parser is necessary."""

from collections.abc import Mapping, Sequence
from ctypes import Structure, addressof, c_char_p, c_int64, c_void_p, string_at
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from dagkit_operators.native.compiled import json_members

if TYPE_CHECKING:  # Arrow is not loaded when only compiling
    import pyarrow as pa

    from dagkit_operators.native.bytewise import Bytes

# Arrow's parser reads 230 to 300 MB/s for each core, and most of its time goes into each value: copying the wanted
# fields to shorter objects first gains a quarter only. C reads 560 MB/s. It gives up at any uncommon form, and Arrow
# parses that part, so what is rejected and why does not depend on C. Texts with escapes and numbers with exponents gain
# nothing.
MOST = 2**31 - 1
"""The most bytes that are read at a time: Arrow's 32-bit offsets address them."""
MOST_NAMES = 8
"""The most names of other members, as in `json_members.c`."""


class _Column(Structure):
    """The members of one name, as `json_members.c` declares them."""

    _fields_ = (
        ("name", c_char_p),
        ("length", c_int64),
        ("kind", c_int64),
        ("texts", c_void_p),
        ("starts", c_void_p),
        ("known", c_void_p),
        ("within", c_void_p),
    )


class _Others(Structure):
    """The members that no column is named after, as `json_members.c` declares them."""

    _fields_ = (
        ("count", c_int64),
        ("names", c_int64),
        ("name", c_void_p * MOST_NAMES),
        ("length", c_int64 * MOST_NAMES),
    )


class _Within(Structure):
    """The members of objects within objects, as `json_members.c` declares them."""

    _fields_ = (("columns", c_void_p), ("count", c_int64), ("others", _Others))


class MemberPairs(tuple[tuple[str, Any], ...]):
    """The names and values of an object in their order; a name may occur twice."""

    __slots__ = ()


class MemberNames(NamedTuple):
    """The names of members that are looked for, also in the objects within objects."""

    known: frozenset[str]
    within: "Mapping[str, MemberNames]" = MappingProxyType({})
    """Those in members that are objects, or arrays of objects."""
    path: str = ""
    """What precedes the names: `customer.` for the members of a customer."""

    def add_others(self, value: Any, found: list[str]) -> None:
        """Add the names of the other members of an object, or of an array of objects: once for each that is no null.

        An object is a dict, or the pairs of its names and values.
        """
        if type(value) is list:
            for one in value:
                self.add_others(one, found)
        elif isinstance(value, dict | MemberPairs):
            for name, held in value.items() if isinstance(value, dict) else value:
                if name in self.within:
                    self.within[name].add_others(held, found)
                elif name not in self.known and held is not None:
                    found.append(self.path + name)


class Others(NamedTuple):
    """The members that no column is named after."""

    values: int
    """How many values they have; a null is none."""
    names: Sequence[str]
    """The first different names."""

    @classmethod
    def of(cls, found: _Others) -> "Others":
        """What C found in bytes that still exist: the names are read there."""
        places = zip(found.name[: found.names], found.length[: found.names], strict=True)
        return cls(found.count, [string_at(*place).decode(errors="replace") for place in places])


def others_of(data: "Bytes", names: MemberNames) -> Others | None:
    """The members not named, of JSON objects that a parser has accepted; None if a parser must find them."""
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    library = json_members()
    if library is None:
        return None
    parts: list[tuple[str, _Within]] = []
    whole, source = _within(names, parts), pa.py_buffer(data)
    place = addressof(whole) + _Within.others.offset
    if not library.dagkit_others(source.address, len(data), whole.columns, whole.count, place):
        return None
    found = [(path, Others.of(part.others)) for path, part in parts]
    counted = [path + name for path, others in found for name in others.names]
    return Others(sum(others.values for _, others in found), counted)


def _within(names: MemberNames, parts: list[tuple[str, _Within]]) -> _Within:
    """What C takes for these names. It is added to `parts` before those within, and keeps its columns alive."""
    within, columns = _Within(), (_Column * len(names.known))()
    parts.append((names.path, within))
    for column, name in zip(columns, names.known, strict=True):
        column.name = text = name.encode(errors="surrogateescape")
        column.length = len(text)
        if name in names.within:
            column.within = addressof(_within(names.within[name], parts))
    within.columns, within.count, within.kept = addressof(columns), len(columns), columns
    return within


def columns_of(data: "Bytes", lines: int, schema: "pa.Schema") -> "tuple[pa.RecordBatch, Others] | None":
    """The members that a schema names, of JSON objects, one a line, and the others. A missing one is null.

    None unless all are JSON of a common form with values of these types. That does not mean that they are broken.
    """
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    library, kinds = json_members(), [_kind_of(field.type) for field in schema]
    if library is None or not all(kinds) or len(data) > MOST:
        return None
    columns, texts = (_Column * len(kinds))(), []
    for column, name, kind in zip(columns, schema.names, kinds, strict=True):
        # All values of one name may together be as long as the data.
        made = np.empty(len(data), np.uint8), np.empty(lines + 1, np.int32), np.empty(lines, np.uint8)
        # Arrow gives an address faster than numpy.
        buffers = [pa.py_buffer(one) for one in made]
        column.name = text = name.encode(errors="surrogateescape")
        column.length, column.kind = len(text), ord(kind)
        column.texts, column.starts, column.known = (buffer.address for buffer in buffers)
        texts.append((made, buffers))
    source, others = pa.py_buffer(data), _Others()
    places = addressof(columns), len(columns), addressof(others)
    if not library.dagkit_members(source.address, len(data), lines, *places):
        return None
    arrays = []
    for field, ((_, _, known), buffers) in zip(schema, texts, strict=True):
        valid = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
        values = pa.Array.from_buffers(pa.string(), lines, [valid, buffers[1], buffers[0]])
        try:
            arrays.append(values if field.type == pa.string() else pc.cast(values, field.type))
        # A number does not fit the type.
        except pa.ArrowInvalid:
            return None
    return pa.RecordBatch.from_arrays(arrays, schema=schema), Others.of(others)


def _kind_of(kind: "pa.DataType") -> str:
    """What the values of a type are in JSON: texts, `b` for true and false, numbers. Empty for other types."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if pa.types.is_string(kind):
        return "t"
    if pa.types.is_boolean(kind):
        return "b"
    return "n" if pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind) else ""
