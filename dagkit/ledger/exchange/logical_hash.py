"""Logical hashes of Arrow tables: of the rows themselves, whatever file, chunks or encoding they lie in.

`table_hash` is injective: every part is preceded by its length or its count, and nulls are told by a bitmap of their
own, so that two tables have one text only if they are equal. `arrow0` is the fabric's published digest for flat
columns, for interoperation only: it can be made to collide ([0, null] and [null, 0] agree), and no official vectors
exist to prove this implementation of it byte for byte.
"""

import hashlib
import io
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dagkit.ledger.format.hashing import ARROW0_SHA3_256, SHA3_256

_DOMAIN = b"dagkit.table/1\n"

UNREADABLE = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, NotImplementedError, MemoryError)
"""What pyarrow raises over bytes that are no table, or a table of a kind that has no logical hash here."""


class _Hasher(Protocol):
    def update(self, data: bytes, /) -> None: ...


def table_of(content: bytes) -> pa.Table:
    """The table that a Parquet or an Arrow file holds."""
    if content.startswith(b"PAR1"):
        from pyarrow import parquet  # noqa: PLC0415 - only who keeps Parquet loads it

        return parquet.read_table(io.BytesIO(content))
    return pa.ipc.open_file(pa.BufferReader(content)).read_all()


def table_hash(table: pa.Table) -> str:
    """The injective logical hash: equal for equal rows under equal column names and types, and for nothing else."""
    hasher = hashlib.sha3_256(_DOMAIN)
    hasher.update(_number(table.num_columns) + _number(table.num_rows))
    for field, column in zip(table.schema, table.columns, strict=True):
        _text(hasher, field.name.encode())
        _array(hasher, _whole(column))
    return SHA3_256 + hasher.hexdigest()


def _array(hasher: _Hasher, array: pa.Array) -> None:
    """Type, count, which are there, and then those that are."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if isinstance(array, pa.ExtensionArray):
        _text(hasher, array.type.extension_name.encode())
        array = array.storage
    _text(hasher, _type_name(array.type).encode())
    hasher.update(_number(len(array)))
    hasher.update(np.packbits(np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)).tobytes())
    present = array.drop_null()
    if pa.types.is_struct(array.type):
        for index in range(array.type.num_fields):
            _text(hasher, array.type.field(index).name.encode())
            _array(hasher, pc.struct_field(present, index))
    elif _is_list(array.type):
        lengths = pc.list_value_length(present)
        hasher.update(np.asarray(lengths, dtype="<u8").tobytes())
        _array(hasher, present.flatten())
    elif pa.types.is_map(array.type):
        _map(hasher, present)
    else:
        hasher.update(_values(present))


def _map(hasher: _Hasher, present: pa.Array) -> None:
    ends = np.asarray(present.offsets, dtype="<u8")
    hasher.update(np.diff(ends).astype("<u8").tobytes())
    start, stop = (int(ends[0]), int(ends[-1])) if len(ends) else (0, 0)
    _array(hasher, present.keys[start:stop] if len(present.keys) != stop - start else present.keys)
    _array(hasher, present.items[start:stop] if len(present.items) != stop - start else present.items)


def _values(present: pa.Array) -> bytes:
    """The values of a column without nulls, told apart by fixed width or by their lengths."""
    kind = present.type
    if pa.types.is_null(kind):
        return b""
    if pa.types.is_boolean(kind):
        return bytes(np.packbits(present.to_numpy(zero_copy_only=False).astype(bool)).tobytes())
    if _is_text(kind):
        large = present.cast(pa.large_binary())
        lengths = np.asarray(pc.binary_length(large), dtype="<u8")
        return lengths.tobytes() + b"".join(value.as_py() for value in large)
    width = kind.bit_width // 8
    data = present.buffers()[1]
    start = present.offset * width
    return b"" if data is None else bytes(memoryview(data)[start : start + len(present) * width])


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary_view(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _type_name(kind: pa.DataType) -> str:
    """The logical type: text is text and a list is a list, however its offsets are kept."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return "binary"
    if pa.types.is_struct(kind):
        return f"struct {kind.num_fields}"
    if pa.types.is_map(kind):
        return "map"
    return "list" if _is_list(kind) else str(kind)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type=column.type)


def _number(value: int) -> bytes:
    return value.to_bytes(8, "little")


def _text(hasher: _Hasher, value: bytes) -> None:
    hasher.update(_number(len(value)) + value)


_ARROW0_TYPES = (
    (pa.types.is_integer, 1),
    (pa.types.is_floating, 2),
    (_is_text, 0),
    (pa.types.is_boolean, 5),
    (pa.types.is_date, 7),
    (pa.types.is_timestamp, 9),
)


def arrow0(table: pa.Table) -> str:
    """The fabric's digest of flat columns, arrow-digest version 0 over sha3-256. Collides; for interoperation only."""
    root, columns = hashlib.sha3_256(), []
    for field, column in zip(table.schema, table.columns, strict=True):
        root.update(_number(len(field.name.encode())) + field.name.encode() + _number(0))
        columns.append(_arrow0_column(_whole(column)))
    for digest in columns:
        root.update(digest)
    return ARROW0_SHA3_256 + root.hexdigest()


def _arrow0_column(array: pa.Array) -> bytes:
    hasher = hashlib.sha3_256(_arrow0_type(array.type))
    for value in array:
        hasher.update(b"\x00" if not value.is_valid else _arrow0_value(value))
    return hasher.digest()


def _arrow0_type(kind: pa.DataType) -> bytes:
    if _is_text(kind):
        return (4 if pa.types.is_string(kind) or pa.types.is_large_string(kind) else 3).to_bytes(2, "little")
    for holds, number in _ARROW0_TYPES:
        if holds(kind):
            head = number.to_bytes(2, "little")
            break
    else:
        raise NotImplementedError(f"arrow0 is offered for flat columns only, and this one is {kind}")
    if pa.types.is_integer(kind):
        return head + bytes([pa.types.is_signed_integer(kind)]) + _number(kind.bit_width)
    if pa.types.is_floating(kind) or pa.types.is_date(kind):
        return head + _number(kind.bit_width)
    if pa.types.is_timestamp(kind):
        unit = ("s", "ms", "us", "ns").index(kind.unit).to_bytes(2, "little")
        zone = (kind.tz or "").encode()
        return head + unit + (_number(len(zone)) + zone if zone else _number(0))
    return head


def _arrow0_value(value: Any) -> bytes:
    kind = value.type
    if pa.types.is_boolean(kind):
        return b"\x02" if value.as_py() else b"\x01"
    if _is_text(kind):
        content = value.cast(pa.large_binary()).as_py()
        return _number(len(content)) + bytes(content)
    return _values(pa.array([value.as_py()], type=kind))
