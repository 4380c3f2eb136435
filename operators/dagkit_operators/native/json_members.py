"""Columns of members of JSON objects, in compiled C. Without it, and for other JSON, a parser is necessary."""

from ctypes import Structure, addressof, c_char_p, c_int64, c_void_p
from typing import TYPE_CHECKING

from dagkit_operators.native.compiled import json_members

if TYPE_CHECKING:  # Arrow is not loaded when only compiling
    import pyarrow as pa

    from dagkit_operators.native.bytewise import Bytes

MOST = 2**31 - 1
"""The most bytes that are read at a time: Arrow's 32-bit offsets address them."""


class _Column(Structure):
    """The members of one name, as `json_members.c` declares them."""

    _fields_ = (
        ("name", c_char_p),
        ("length", c_int64),
        ("kind", c_int64),
        ("texts", c_void_p),
        ("starts", c_void_p),
        ("known", c_void_p),
    )


def columns_of(data: "Bytes", lines: int, schema: "pa.Schema") -> "pa.RecordBatch | None":
    """The members that a schema names, of JSON objects, one a line. A missing one is null.

    None unless all are JSON of a common form with values of these types. That does not mean that they are broken.
    """
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    members, kinds = json_members(), [_kind_of(field.type) for field in schema]
    if members is None or not all(kinds) or len(data) > MOST:
        return None
    columns, texts = (_Column * len(kinds))(), []
    for column, name, kind in zip(columns, schema.names, kinds, strict=True):
        made = np.empty(len(data), np.uint8), np.empty(lines + 1, np.int32), np.empty(lines, np.uint8)
        buffers = [pa.py_buffer(one) for one in made]  # Arrow gives an address faster than numpy
        column.name = text = name.encode(errors="surrogateescape")
        column.length, column.kind = len(text), ord(kind)
        column.texts, column.starts, column.known = (buffer.address for buffer in buffers)
        texts.append((made, buffers))
    source = pa.py_buffer(data)
    if not members(source.address, len(data), lines, addressof(columns), len(columns)):
        return None
    arrays = []
    for field, ((_, _, known), buffers) in zip(schema, texts, strict=True):
        valid = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
        values = pa.Array.from_buffers(pa.string(), lines, [valid, buffers[1], buffers[0]])
        try:
            arrays.append(values if field.type == pa.string() else pc.cast(values, field.type))
        except pa.ArrowInvalid:  # a number that the type cannot hold
            return None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _kind_of(kind: "pa.DataType") -> str:
    """What the values of a type are in JSON: texts, `b` for true and false, numbers. Empty for other types."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if pa.types.is_string(kind):
        return "t"
    if pa.types.is_boolean(kind):
        return "b"
    return "n" if pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind) else ""
