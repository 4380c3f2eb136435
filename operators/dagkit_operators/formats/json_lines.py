"""Reading JSON lines: each line is an object."""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self

from pydantic import model_validator

from dagkit import Block, Listed
from dagkit_operators.filesystem.access import Seekable
from dagkit_operators.formats.line_format import LineFormat, RowRefused, one_batch
from dagkit_operators.formats.parts import Part
from dagkit_operators.formats.tabular import Made, Places, RecordsReader, V, text_of_row
from dagkit_operators.native.json_members import MemberNames, columns_of
from dagkit_operators.payloads import Rejected
from dagkit_operators.values.record_types import Ignored, names_within, other_members, reason_of, with_nulls

if TYPE_CHECKING:
    import pyarrow as pa


class NotObjects(RowRefused):
    """Not each line is an object."""


class JsonLinesContext(LineFormat):
    """Reads JSON lines: one object a line, in UTF-8 unless `encoding` is set. Empty lines are skipped.

    With a `record_type` or `types`, many lines are parsed at once. Other fields of the objects are not read, and the
    reader counts their values, unless `columns` or `record_type` leaves them out. Without types, or if a field has a
    type that Arrow lacks, each line is parsed by Python.
    """

    @model_validator(mode="after")
    def _where_has_types(self) -> Self:
        if self.where is None:
            return self
        declared = self.declared()
        unknown = [name for name in self.tested if declared.get(name) is None]
        if unknown or not declared or None in declared.values():
            name = unknown[0] if unknown else next((name for name in declared if declared[name] is None), "")
            raise ValueError(f"where needs the type of each field{f', and {name!r} has none' * bool(name)}; set types")
        return self

    @property
    def is_typed(self) -> bool:
        """Whether each column has an Arrow type, so that each block gives the same types."""
        declared = self.declared()
        return bool(declared) and all(declared.get(name) is not None for name in (self.wanted or declared))

    def schema_of(self, stream: Seekable, block: Block) -> "pa.Schema":  # noqa: ARG002 - the same for every file
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        declared = self.declared()
        return pa.schema([(name, declared[name]) for name in self.needed([*declared], "")] if self.is_typed else [])

    def batch_of(self, part: Part, schema: "pa.Schema") -> "tuple[pa.RecordBatch, Ignored | None]":
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling
        import pyarrow.json as pa_json  # noqa: PLC0415

        # The scanner in C reads common JSON in a fraction of the time, and returns None for anything else.
        read = columns_of(part.data, len(part), schema)
        if read is not None:
            batch, others = read
            return one_batch(pa.Table.from_batches([batch]), len(part)), self.ignored(*others)
        if not _are_objects(part):
            raise NotObjects("the line is not a JSON object")
        parsed = pa.schema([(field.name, _parsed_as(field.type)) for field in schema])
        options = pa_json.ParseOptions(explicit_schema=parsed, unexpected_field_behavior="ignore")
        # All lines are one block of Arrow, which refuses an object in more than two blocks.
        reading = pa_json.ReadOptions(use_threads=False, block_size=len(part.data) + 1)
        try:
            table = pa_json.read_json(pa.BufferReader(part.data), reading, options)
            table = table if parsed == schema else table.cast(schema)
        except pa.ArrowException as fault:
            raise RowRefused(reason_of(fault).removesuffix(" in row 0")) from None
        return one_batch(table, len(part)), self._others(part, schema)

    def _others(self, part: Part, schema: "pa.Schema") -> Ignored | None:
        """The fields of objects that Arrow has parsed, other than those of a schema."""
        if self.leaves_others:
            return None
        return self.ignored(*other_members(part.data, lambda: part, MemberNames(frozenset(schema.names))))

    def parsed(self, block: Block, part: Part, schema: "pa.Schema") -> Iterator[Made]:
        if not len(schema):
            yield from self._by_python(block, part)
            return
        try:
            batch, ignored = self.batch_of(part, schema)
        except NotObjects:
            for lines in _trimmed(part, self.blank):
                yield from super().parsed(block, lines, schema)
        except RowRefused as fault:
            yield from self._one_by_one(block, part, schema, str(fault))
        else:
            yield from self.made(block, batch, Places(part.starts, part))
            if ignored is not None:
                yield ignored

    def _by_python(self, block: Block, part: Part) -> Iterator[Made]:
        """The records of lines, each parsed by itself."""
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        maker, starts, known = self.maker(), part.starts(), names_within(self.record_type)
        records: list[Any] = []
        texts: list[bytes] = []
        places: list[int] = []
        for start, line in zip(starts, part, strict=True):
            if not line.strip(self.blank):
                continue
            try:
                text = line.removeprefix(BOM_UTF8) if start == 0 else line
                row = self._projected(json.loads(text))
                record = row if maker.validated is None else maker.validated(row)
            except (ValueError, RecursionError) as fault:
                yield Rejected(block.path, start, text_of_row(line), reason_of(fault))
            else:
                records.append(record)
                places.append(start)
                texts.append(text)
        if records:
            yield self.records(block, Listed(records, lambda: places))
        if known is not None and not self.leaves_others:
            data = part.data if len(texts) == len(part) else np.frombuffer(b"".join(texts), np.uint8)
            ignored = self.ignored(*other_members(data, lambda: texts, known))
            if ignored is not None:
                yield ignored

    def _projected(self, row: Any) -> Any:
        """The columns of a record."""
        if not isinstance(row, dict):
            raise ValueError("the line is not a JSON object")  # noqa: TRY004 - the line is refused
        if not self.wanted:
            return row
        if self.record_type is not None and self.maker().validated is not None:
            return with_nulls(row, self.record_type)
        missing = [name for name, field in self.fields.items() if not field.is_optional and row.get(name) is None]
        if missing:
            raise ValueError(f"no value for {', '.join(missing)}")
        return {name: row.get(name) for name in self.wanted}


def _parsed_as(declared: "pa.DataType") -> "pa.DataType":
    """The type as which a column is parsed, before it gets its own. Arrow takes a date in JSON for a number of days."""
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    if pa.types.is_list(declared):
        return pa.list_(_parsed_as(declared.value_type))
    return pa.string() if pa.types.is_date32(declared) else declared


def _are_objects(part: Part) -> bool:
    """Whether each line begins with a brace and ends with one.

    A line end between two braces can only lie between two objects. So if as many objects are parsed as there are lines,
    each line is one object.
    """
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    data, starts, ends = part.data, part.offsets[:-1], part.offsets[1:]
    lasts = ends - 1
    lasts = np.where(data[lasts] == ord("\n"), lasts - 1, lasts)
    lasts = np.where((data[lasts] == ord("\r")) & (lasts > starts), lasts - 1, lasts)
    return bool(((data[starts] == ord("{")) & (data[lasts] == ord("}"))).all())


def _trimmed(part: Part, blank: bytes) -> Sequence[Part]:
    """The lines without blanks at their ends; those that are no objects apart, and blank ones left out."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    parts: list[Part] = []
    texts: list[bytes] = []
    indices: list[int] = []

    def close() -> None:
        if texts:
            offsets = np.cumsum([0, *map(len, texts)])
            taken = list(indices)
            data = np.frombuffer(b"".join(texts), np.uint8)
            parts.append(Part(data, offsets, lambda: [part.starts()[index] for index in taken]))
            texts.clear()
            indices.clear()

    starts = part.starts()
    for index, line in enumerate(part):
        text = (line.removeprefix(BOM_UTF8) if starts[index] == 0 else line).strip(blank)
        if not text:
            continue
        is_object = text.startswith(b"{") and text.endswith(b"}")
        if not is_object:
            close()
        texts.append(text + b"\n")
        indices.append(index)
        if not is_object:
            close()
    close()
    return parts


class JsonLinesReader(RecordsReader[V], Generic[V]):
    """Reads blocks of JSON lines, and sends a record for each line."""

    kind = "files.json-lines-reader/1"

    reader_context: JsonLinesContext = JsonLinesContext()
    """How lines become records."""
