"""The format, encoding and types of the files of a folder, by a look at some of them."""

import codecs
import csv
import glob
import io
import json
import lzma
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, repeat
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from dagkit.cli.making.origin import Origin, literal
from dagkit.cli.making.record_classes import Classes
from dagkit.cli.terminal.output import WrongUsage
from dagkit.errors import printable
from dagkit.ground.urls import as_text

_TEXT, _ARCHIVE = "text", "archive"
_ENDINGS = {
    ".csv": "CSV",
    ".tsv": "CSV",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".json": "JSON lines",
    ".parquet": "Parquet",
    ".avro": "Avro",
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z", ".rar"), "archive"),
}
_COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".lz4")
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
"""Endings that Arrow decompresses. It does not know xz."""
_BYTES, _FILES, _ROWS, _MOST_LISTED = 1 << 18, 100, 20_000, 100_000
"""How much is looked at: bytes of a file, files, rows of all files together, and names of files."""
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_ZEROS: Mapping[tuple[bool, ...], str] = {
    (False, True, False, True): "utf-16-le",
    (True, False, True, False): "utf-16-be",
    (False, True, True, True): "utf-32-le",
    (True, True, True, False): "utf-32-be",
}
"""Encodings by the zeros among the first four bytes of a text that begins with ASCII."""
_DEFAULT = "utf-8-sig"
_NUMBER = re.compile(r"[-+]?[\d.,]+")
_BAD_FILES = {"Splitter.prop.onBadFile": "quarantine", "Reader.prop.onBadFile": "quarantine"}
"""One file that cannot be read does not stop the others: `dagkit files ls` names it."""
_AS_JSON = '''

def as_json(record: dict[str, Any]) -> str:
    """A record as a line of JSON."""
    return json.dumps(record, default=str)
'''


def origin_of_files(place: Path, row: str, home: Path) -> Origin:
    """The files of a folder, or one file, for an application in `home`. Of several formats, the one of most files."""
    # Whole paths, as the application finds them, of which an end may name one.
    folder = place.resolve() if place.is_dir() else None
    paths = list(islice(files_below(folder or place), _MOST_LISTED))
    if not paths:
        raise WrongUsage(f"the folder {printable(str(place))} has no file to look at")
    formats = {path: _ENDINGS.get(_ending(path), _TEXT) for path in paths}
    # Archives come last, because they cannot be read: any other format is chosen before them.
    ((kind, count), *others) = sorted(
        Counter(formats.values()).items(), key=lambda each: (each[0] == _ARCHIVE, -each[1])
    )
    if kind == _ARCHIVE:
        raise WrongUsage(f"{printable(str(place))} holds only archives, which are not read: unpack them")
    chosen = [path for path in paths if formats[path] == kind]
    origin = _LOOKS[kind](chosen, row)
    properties = {"Splitter.prop.scanner.files": _files_value(place), **_BAD_FILES, **origin.properties}
    notes = list(origin.notes)
    if folder is not None and home.resolve().is_relative_to(folder):
        if any(path.parent != folder for path in paths):
            raise WrongUsage(
                f"{printable(str(home))} would be in {printable(str(place))}, and the application would read what it "
                "writes; name a folder outside of it"
            )
        properties["Splitter.prop.scanner.recursive"] = "false"
        notes.append("not read: folders in it, as the application writes into one")
    if others:
        endings = [ending for ending, form in _ENDINGS.items() if (form == kind) is (kind != _TEXT)]
        # Text has no ending of its own, so the endings of the other formats are ignored instead.
        setting = "ignoreFilePatternRegularExp" if kind == _TEXT else "filePatternRegularExp"
        # In upper and lower case, as the files were counted.
        properties[f"Splitter.prop.scanner.{setting}"] = f"(?is).*({_either(endings)})({_either(_COMPRESSED)})?"
        notes.append("not read: " + ", ".join(f"{number:,} {_files_of(other, number)}" for other, number in others))
        notes[-1] += "; archives are to be unpacked" if _ARCHIVE in dict(others) else ""
    number = f"{count:,}" if len(paths) < _MOST_LISTED else f"more than {_MOST_LISTED:,}"
    what = f"{number} {_files_of(kind, count)} in {place.resolve() if place.name in ('', '..') else place}"
    return replace(origin, what=what, properties=properties, notes=notes)


def _files_value(place: Path) -> str:
    """A place as the value of a property that is a list."""
    path = as_text(str(place.resolve()))
    # Plain text is divided at commas, and trimmed.
    return literal(path if "," not in path and path == path.strip() and path.isprintable() else json.dumps([path]))


def _files_of(kind: str, count: int) -> str:
    return f"{kind}{'' if kind == _ARCHIVE else ' file'}{'s' * (count != 1)}"


def files_below(place: Path) -> Iterator[Path]:
    """The files of a folder, hidden ones left out. They are listed folder by folder, as far as the caller iterates."""
    if place.is_file():
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(folder, name) for name in sorted(names) if not name.startswith(".")):
            if path.suffix != ".tmp" and path.is_file():
                yield path


def _ending(path: Path) -> str:
    """The ending that gives the format: the one before `.gz`."""
    named = path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
    return named.suffix.lower()


def _either(endings: Iterable[str]) -> str:
    return "|".join(map(re.escape, endings))


def _csv(paths: Sequence[Path], row: str) -> Origin:
    classes = Classes()
    heads = _heads(paths, classes.remarks)
    most = max(1, _ROWS // len(heads))
    found = [_separator(head.text) for head in heads]
    separator = Counter(filter(None, found)).most_common(1)[0][0] if any(found) else ","
    separators = [each or separator for each in found]
    sheets = [_cells(head.text, each, most + 1) for head, each in zip(heads, separators, strict=True)]
    sheets = list(filter(None, sheets))
    if not sheets:
        raise WrongUsage(f"{printable(str(paths[0]))} has no row to look at")
    ((first, _),) = Counter(tuple(sheet[0]) for sheet in sheets).most_common(1)
    encoding = _chosen(heads)
    has_header = len({*first}) == len(first) and all(name and not _NUMBER.fullmatch(name) for name in first)
    columns = first if has_header else [f"column_{number}" for number in range(1, len(first) + 1)]
    # Readers take columns by their names, whatever their order.
    alike = [sheet for sheet in sheets if not has_header or sorted(sheet[0]) == sorted(first)]
    rows = [cells for sheet in alike for cells in _in_order(sheet, first if has_header else ())]
    nulls = classes.add_rows(row, columns, rows, _about("row", len(rows), len(alike)))
    settings = [
        f"record_type={row}",
        *([] if separator == "," else [f'separator="{separator}"'.replace("\t", "\\t")]),
        *([] if has_header else ["header=False"]),
        *([f"null_values={('', *sorted(nulls))}".replace("'", '"')] if nulls else []),
        *_encoding(encoding),
    ]
    if len(alike) < len(sheets):
        left = len(sheets) - len(alike)
        classes.remarks.append(f"{left} of {len(sheets)} files have other columns, and are set aside")
    others = [{} if each == separator else {"separator": each} for each in separators]
    return _typed("Csv", settings, classes, _by_file(paths, heads, encoding, classes.remarks, others))


def _in_order(sheet: Sequence[Sequence[str]], names: Sequence[str]) -> Iterator[Sequence[str]]:
    """The rows of a sheet with as many cells as its first one, in the order of these names, if it has a header."""
    order = [sheet[0].index(name) for name in names] or range(len(sheet[0]))
    for cells in sheet[bool(names) :]:
        if len(cells) == len(order):
            yield [cells[place] for place in order]


def _json_lines(paths: Sequence[Path], row: str) -> Origin:
    classes = Classes()
    heads = _heads(paths, classes.remarks)
    most = max(1, _ROWS // len(heads))
    records = [record for head in heads for record in islice(_objects(head.text), most)]
    if not records:
        raise WrongUsage(f"{printable(str(paths[0]))} has no line with a JSON object, and only such files are read")
    classes.add_records(row, records, _about("record", len(records), len(heads)))
    encoding = _chosen(heads)
    by_file = _by_file(paths, heads, encoding, classes.remarks)
    return _typed("JsonLines", [f"record_type={row}", *_encoding(encoding)], classes, by_file)


def _typed(form: str, settings: Sequence[str], classes: Classes, by_file: Mapping[str, str]) -> Origin:
    """Files whose records have declared types, which are written as Parquet."""
    return Origin(
        "",
        "FileSplitterInput",
        f"{form}Reader",
        "ParquetPartWriter()",
        context=f"{form}Context({', '.join(settings)})",
        classes=classes,
        properties=by_file,
        notes=classes.remarks,
    )


def _parquet(_: Sequence[Path], __: str) -> Origin:
    context = 'ParquetContext(sends="batches")'
    return Origin("", "FileSplitterInput", "ParquetReader", "ParquetPartWriter()", context=context, rejects=False)


def _avro(_: Sequence[Path], __: str) -> Origin:
    return Origin("", "FileSplitterInput", "AvroReader", "PartWriter(format=as_json)", functions=_AS_JSON)


def _text(paths: Sequence[Path], _: str) -> Origin:
    notes: list[str] = []
    heads = _heads(paths, notes)
    encoding = _chosen(heads)
    return Origin(
        "",
        "FileSplitterInput",
        "LineReader",
        "PartWriter()",
        settings="".join(_encoding(encoding)),
        properties=_by_file(paths, heads, encoding, notes),
        rejects=False,
        notes=notes,
    )


_LOOKS = {"CSV": _csv, "JSON lines": _json_lines, "Parquet": _parquet, "Avro": _avro, _TEXT: _text}


def _about(what: str, count: int, files: int) -> str:
    seen = f"{count:,} {what}{'s' * (count != 1)} of {files} file{'s' * (files != 1)}"
    return f"A {what}, as {seen} looked. Others are rejected: change a type to let them pass."


class _Head(NamedTuple):
    """The first lines of a file."""

    path: Path
    text: str
    encoding: str
    """Empty for ASCII, which is text in each encoding but UTF-16 and UTF-32."""


def _heads(paths: Sequence[Path], remarks: list[str]) -> list[_Head]:
    """The first lines of some of the files, of each that can be read. Raise WrongUsage if none can."""
    heads, refused = [], []
    for path in paths[:: max(1, len(paths) // _FILES)][:_FILES]:
        try:
            heads.append(_head(path))
        except (OSError, EOFError, lzma.LZMAError) as error:
            refused.append(f"{printable(str(path))} cannot be read: {printable(str(error))}")
    if not heads:
        raise WrongUsage(refused[0])
    if refused:
        more = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
        remarks.append(f"{refused[0]}{more}: such files are set aside")
    return heads


def _head(path: Path) -> _Head:
    import pyarrow as pa  # noqa: PLC0415 - not loaded by other commands

    ending = path.suffix.lower()
    with (
        lzma.open(path) if ending == ".xz" else path.open("rb") as file,
        pa.input_stream(file, compression=_CODECS.get(ending)) as stream,
    ):
        content: bytes = stream.read(_BYTES)
    is_whole, encoding = len(content) < _BYTES, _encoding_of(content)
    try:
        # The bytes may end within a character.
        text = codecs.getincrementaldecoder(encoding)().decode(content, final=is_whole)
    except UnicodeDecodeError:
        text, encoding = content.decode("latin-1"), "latin-1"
    lines = text if is_whole else text[: text.rfind("\n") + 1]
    return _Head(path, lines, "" if content.isascii() and encoding == _DEFAULT else encoding.removesuffix("-sig"))


def _encoding_of(content: bytes) -> str:
    """The encoding that the byte order mark names, or the zeros of its first characters, if these are ASCII."""
    marked = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "")
    return marked or _ZEROS.get(tuple(byte == 0 for byte in content[:4]), _DEFAULT)


def _chosen(heads: Sequence[_Head]) -> str:
    """The encoding of most files: UTF-8 if that is among them, since no bytes of another one pass as text in it."""
    encodings = [head.encoding for head in heads if head.encoding]
    return "utf-8" if "utf-8" in encodings else next(iter(encodings), "utf-8")


def _encoding(chosen: str) -> list[str]:
    """The setting for an encoding, if it is not the default."""
    return [] if chosen == "utf-8" else [f'encoding="{chosen}"']


def _by_file(
    paths: Sequence[Path],
    heads: Sequence[_Head],
    chosen: str,
    remarks: list[str],
    others: Iterable[Mapping[str, str]] = repeat({}),
) -> dict[str, str]:
    """The property of a reader with what differs from file to file: the encoding, and other values of each file."""
    by_file = {}
    for head, values in zip(heads, others, strict=False):
        differing = {**values, **({"encoding": head.encoding} if head.encoding not in ("", chosen) else {})}
        if differing:
            by_file[glob.escape(_end(head.path, paths))] = differing
    if not by_file:
        return {}
    names = " and ".join(sorted({name for values in by_file.values() for name in values}))
    remarks.append(f"{len(by_file)} of {len(heads)} files have another {names}: Reader.prop.byFile in the properties")
    return {"Reader.prop.byFile": literal(json.dumps(by_file))}


def _end(path: Path, paths: Sequence[Path]) -> str:
    """The shortest end of a path that no other path has: its name, unless files of several folders have that."""
    ends = ((length, path.parts[-length:]) for length in range(1, len(path.parts) + 1))
    others = [other for other in paths if other != path]
    length = next(length for length, end in ends if all(other.parts[-length:] != end for other in others))
    return "/".join(PurePath(as_text(str(path))).parts[-length:])


def _cells(text: str, separator: str, most: int = 1000) -> list[list[str]]:
    """The first rows of a text; none if they are no CSV."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=False)
    try:
        return list(islice(filter(None, reader), most))
    except csv.Error:
        return []


def _separator(text: str) -> str:
    """What separates the cells of a text; empty if it has one column."""
    best = max(",;\t|", key=partial(_regularity, text))
    return best if _regularity(text, best) > (0, 0) else ""


def _regularity(text: str, separator: str) -> tuple[int, int]:
    """How many rows have as many cells as the first one, more than one, and how many cells that is."""
    sheet = _cells(text, separator)
    width = len(sheet[0]) if sheet else 0
    return (sum(len(cells) == width for cells in sheet), width) if width > 1 else (0, 0)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value
