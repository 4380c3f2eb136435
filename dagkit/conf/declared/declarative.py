"""Reading applications that are declared in a file: in JSON, or by keys.

The keys are `operator.NAME.classname`, `stream.NAME.source` and others, with or without prefix.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dagkit.api.traces import shown_path
from dagkit.conf.declared.declaration import (
    Declaration,
    DeclaredApplication,
    DeclaredEnd,
    DeclaredOperator,
    DeclaredStream,
    setting,
)
from dagkit.conf.declared.declared_json import declared_in_json
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.grammar.property_keys import (
    Address,
    AttributeRef,
    Element,
    Keyword,
    Malformed,
    PropertyPath,
    parse_path,
    path_of,
)
from dagkit.conf.sources.property_files import read_file
from dagkit.conf.sources.user_files import ParseError
from dagkit.conf.values.object_making import split_list
from dagkit.errors import ApplicationFaults, ApplicationNotFound, Diagnostic, Where, did_you_mean

ENDINGS = (".json", ".properties")


def declared_application(path: Path) -> DeclaredApplication:
    """The application that the file declares. Raise `ApplicationFaults` if the file cannot be parsed.

    Other faults in the file become faults of the Dag that the application fills.
    """
    name = path.absolute().parent.name if path.stem == "app" else path.stem
    shown = shown_path(str(path))
    if not path.is_file():
        beside = [p.name for p in path.parent.iterdir() if p.suffix in ENDINGS] if path.parent.is_dir() else []
        raise ApplicationNotFound(f"there is no {shown}", did_you_mean(path.name, beside))
    if path.suffix == ".json":
        try:
            return DeclaredApplication(declaration=declared_in_json(path.read_bytes(), shown, name))
        except ParseError as error:
            raise ApplicationFaults(name, [error.diagnostic(shown, "file-unreadable")]) from error
    entries, faults = read_file(path)
    if faults:
        raise ApplicationFaults(name, faults)
    return DeclaredApplication(declaration=declared_in_properties(entries, name))


def declared_in_properties(entries: Sequence[ParsedEntry], name: str) -> Declaration:
    """The declaration in the keys; `name` is used if APPLICATION_NAME is not set."""
    reader = _Reader(name)
    for entry in entries:
        reader.read(entry)
    return Declaration(
        reader.name,
        tuple(reader.operators),
        tuple(reader.streams.values()),
        tuple(reader.settings),
        reader.variables,
        tuple(reader.faults),
    )


class _Reader:
    """Reads one key after the other."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.operators: list[DeclaredOperator] = []
        self.streams: dict[str, DeclaredStream] = {}
        self.settings: list[ParsedEntry] = []
        self.variables: dict[str, Any] = {}
        self.faults: list[Diagnostic] = []
        self.seen: dict[tuple[str, ...], Where] = {}

    def read(self, entry: ParsedEntry) -> None:
        path = path_of(entry.key)
        address = parse_path(entry.key if path is None else path)
        where = entry.origin.where
        assert where is not None, "the keys of a file have a place"
        if isinstance(address, Malformed):
            self.faults.append(Diagnostic("key-malformed", f"{entry.key}: {address.problem}", address.help, where))
            return
        if path is None and address.element is Element.APPLICATION and isinstance(address.sets, PropertyPath):
            self.variables[entry.key] = entry.value or ""
            return
        first = self.seen.setdefault(address.identity, where)
        if first is not where:
            problem = f"{entry.key} is set twice; the first is at {first}"
            self.faults.append(Diagnostic("key-duplicated", problem, "keep one of the two", where))
        elif entry.value is None:
            problem = f"{entry.key} has no value here"
            self.faults.append(Diagnostic("key-required", problem, f"write {entry.key}=…", where))
        else:
            self.place(address, entry, where)

    def place(self, address: Address, entry: ParsedEntry, where: Where) -> None:
        """Record the key as an operator, as a part of a stream, or as a setting."""
        word = address.sets.word if isinstance(address.sets, Keyword) else ""
        name = address.name.text if address.name is not None else ""
        value = str(entry.value).strip()
        if address.element is Element.OPERATOR and word == "classname":
            self.operators.append(DeclaredOperator(name, value, where))
        elif address.element is Element.STREAM and word != "schema":
            self.stream(name, word, value, where)
        else:
            self.settings.append(setting(address, entry.value, where, entry.key))
            if address.sets == AttributeRef("APPLICATION_NAME"):
                self.name = value

    def stream(self, name: str, word: str, value: str, where: Where) -> None:
        stream = self.streams.setdefault(name, DeclaredStream(name, where))
        if word == "source":
            stream = replace(stream, source=self.end(name, value, where))
        elif word == "sinks":
            ends = (self.end(name, part, where) for part in split_list(value))
            stream = replace(stream, sinks=tuple(end for end in ends if end is not None))
        elif word == "locality":
            stream = replace(stream, locality=(value, where))
        else:
            help_ = "set the properties of the template on the stream itself"
            self.faults.append(Diagnostic("key-unmatched", f"stream {name!r} has a {word}", help_, where))
        self.streams[name] = stream

    def end(self, stream: str, text: str, where: Where) -> DeclaredEnd | None:
        operator, dot, port = text.strip().rpartition(".")
        if not (dot and operator and port):
            problem = f"stream {stream!r} names {text!r}, which is not operator.port"
            self.faults.append(Diagnostic("key-malformed", problem, "write OPERATOR.PORT", where))
            return None
        return DeclaredEnd(operator, port, where)
