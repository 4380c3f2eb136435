"""Applications declared in JSON: Apex's form, what its `show-logical-plan` prints, and dagkit's own plans."""

import codecs
import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from json import decoder, scanner
from typing import Any

from dagkit.api.secrets import MASK
from dagkit.conf.declared.declaration import Declaration, DeclaredEnd, DeclaredOperator, DeclaredStream, setting
from dagkit.conf.grammar.names import NamePattern
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.grammar.property_keys import Address, Element, Keyword, Malformed, PortKind, PropertyPath, parse_path
from dagkit.conf.sources.user_files import ParseError, wrong_bytes
from dagkit.errors import Code, Diagnostic, Where, did_you_mean

PLAN_SCHEMA = "dagkit.plan/1"

_APPLICATION = ("displayName", "description", "attributes", "operators", "streams", "application", "schema", "modules")
_OPERATOR = ("name", "class", "properties", "attributes", "ports", "description")
_PORT = ("name", "type", "attributes")
_STREAM = ("name", "source", "sinks", "locality", "schema")
_END = ("operatorName", "portName")

_OF_PLANS = {
    _APPLICATION: ("stages", "cuts"),
    _OPERATOR: ("kind", "role", "partitions", "why", "parallel_with", "stage"),
    _PORT: ("payload", "connected"),
    _STREAM: ("payload", "fields", "unifiers"),
    _END: ("routing", "parallel"),
}
"""Fields that only plans have: how the application will run. The compiler computes them again."""


# -- JSON whose objects know their lines, for faults in them -----------------------------------------------------------


class Lines:
    """A text with an index of its line ends, to find line numbers quickly."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def line_of(self, offset: int) -> int:
        """The number, from 1, of the line that contains this offset."""
        return bisect_left(self._ends, offset) + 1


class JsonObject(dict[str, Any]):
    """An object in a JSON text: its pairs, its line, and its duplicate keys."""

    lines: Lines
    start: int
    twice: tuple[str, ...] = ()

    @property
    def line(self) -> int:
        return self.lines.line_of(self.start)

    def line_of(self, key: str) -> int:
        """The line of a key: that of its first occurrence after the start of the object."""
        found = _written(key).search(self.lines.text, self.start)
        return self.line if found is None else self.lines.line_of(found.start())


@cache
def _written(key: str) -> re.Pattern[str]:
    return re.compile(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:")


def read_json(data: bytes) -> Any:
    """The value of a JSON text, with objects as `JsonObject`. Raise `ParseError` if it is not JSON."""
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise wrong_bytes(data, wrong) from wrong
    try:
        return _Decoder(text).decode(text)
    except json.JSONDecodeError as malformed:
        reason = malformed.msg[:1].lower() + malformed.msg[1:]
        raise ParseError(f"it is not JSON: {reason}", "fix the line", malformed.lineno) from malformed
    except RecursionError as deep:
        raise ParseError("it is nested too deeply", "an application needs no more than a few levels") from deep


class _Decoder(json.JSONDecoder):
    """The decoder of the standard library, which here records where objects begin."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines = Lines(text)
        self.parse_object = self._object
        # The scanner in C never calls `parse_object`.
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]  # the stubs only know C's

    def _object(self, text_and_end: tuple[str, int], *arguments: Any) -> tuple[JsonObject, int]:
        strict, scan_once, _, _, memo = arguments
        pairs, end = decoder.JSONObject(text_and_end, strict, scan_once, None, list, memo)  # type: ignore[attr-defined]
        found = JsonObject(pairs)
        found.lines, found.start = self.lines, text_and_end[1] - 1
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            found.twice = tuple(key for key in found if keys.count(key) > 1)
        return found, end


# -- the application ---------------------------------------------------------------------------------------------------


def declared_in_json(data: bytes, shown: str, name: str) -> Declaration:
    """The declaration in the text; `name` is used if it has no name. Raise `ParseError` if it is not an application."""
    document = read_json(data)
    if isinstance(document, JsonObject) and isinstance(document.get("logicalPlan"), JsonObject):
        name, document = str(document.get("applicationName", name)), document["logicalPlan"]
    if not isinstance(document, JsonObject) or "operators" not in document:
        raise ParseError(
            "it declares no operators", 'an application is a JSON object with "operators" and "streams"', 1
        )
    reader = _Reader(shown, is_plan=document.get("schema") == PLAN_SCHEMA)
    reader.known(document, _APPLICATION, "the application")
    return Declaration(
        str(document.get("displayName") or document.get("application") or name),
        tuple(reader.operators(document)),
        tuple(reader.streams(document)),
        (*reader.attributes(document, "the application", Element.APPLICATION), *reader.settings),
        faults=tuple(reader.faults),
    )


class _Reader:
    """Reads one document. Collects faults and leaves out faulty parts."""

    def __init__(self, shown: str, *, is_plan: bool) -> None:
        self.shown = shown
        self.is_plan = is_plan
        self.faults: list[Diagnostic] = []
        self.settings: list[ParsedEntry] = []

    def operators(self, document: JsonObject) -> Iterator[DeclaredOperator]:
        for operator in self.objects(document, "operators"):
            self.known(operator, _OPERATOR, "an operator")
            name, class_name = self.text(operator, "name"), self.text(operator, "class")
            if name is not None and class_name is not None:
                yield DeclaredOperator(name, class_name, self.at(operator))
                self.settings += self.properties(operator, name)
                self.settings += self.attributes(operator, f"operator {name!r}", Element.OPERATOR, name)
                self.settings += self.ports(operator, name)

    def properties(self, operator: JsonObject, name: str) -> Iterator[ParsedEntry]:
        properties = operator.get("properties")
        if properties is None:
            return
        if not isinstance(properties, JsonObject):
            problem = f"the properties of {name!r} are not an object"
            self.fault("property-invalid", problem, "write {…}", self.at(operator))
            return
        self.refuse_duplicates(properties, f"the properties of {name!r}")
        for key, value in properties.items():
            if key == "@class":
                continue
            where = Where(self.shown, properties.line_of(key))
            if value == MASK:
                problem = f"{key} of {name!r} is a secret that the plan does not show"
                self.fault("property-invalid", problem, f"set it with -D dt.operator.{name}.prop.{key}=…", where)
                continue
            address = Address(Element.OPERATOR, PropertyPath((key,)), NamePattern(name))
            yield setting(address, value, where, f"{name}.{key}")

    def attributes(
        self,
        bearer: JsonObject,
        what: str,
        element: Element,
        operator: str | None = None,
        *,
        port: tuple[PortKind, str] | None = None,
    ) -> Iterator[ParsedEntry]:
        """The attributes of one bearer."""
        attributes = bearer.get("attributes")
        if attributes is None:
            return
        if not isinstance(attributes, JsonObject):
            self.fault("attribute-invalid", f"the attributes of {what} are not an object", "write {…}", self.at(bearer))
            return
        self.refuse_duplicates(attributes, f"the attributes of {what}")
        for name, value in attributes.items():
            where = Where(self.shown, attributes.line_of(name))
            parsed = parse_path(f"attr.{name}")
            if isinstance(parsed, Malformed):
                self.fault("key-malformed", f"{name} of {what}: {parsed.problem}", parsed.help, where)
            elif value is not None:
                named = None if operator is None else NamePattern(operator)
                of_port = () if port is None else (port[0], NamePattern(port[1]))
                address = Address(element, parsed.sets, named, None, *of_port)
                yield setting(address, value, where, f"{name} of {what}")

    def ports(self, operator: JsonObject, name: str) -> Iterator[ParsedEntry]:
        for port in self.objects(operator, "ports", may_be_absent=True):
            self.known(port, _PORT, "a port")
            port_name = self.text(port, "name")
            if port_name is not None:
                kind = {"input": PortKind.INPUT, "output": PortKind.OUTPUT}.get(str(port.get("type")), PortKind.PORT)
                yield from self.attributes(port, f"{name}.{port_name}", Element.PORT, name, port=(kind, port_name))

    def streams(self, document: JsonObject) -> Iterator[DeclaredStream]:
        for number, stream in enumerate(self.objects(document, "streams", may_be_absent=True), start=1):
            self.known(stream, _STREAM, "a stream")
            source, sinks = self.end(stream.get("source"), stream), self.sinks(stream)
            named = self.text(stream, "name") if "name" in stream else None
            name = named or (f"{source.operator}:{source.port}" if source else f"stream-{number}")
            locality = None
            if stream.get("locality") is not None:
                locality = str(stream["locality"]), Where(self.shown, stream.line_of("locality"))
            yield DeclaredStream(name, self.at(stream), source, sinks, locality)
            self.settings += self.schema(stream, name)
            self.settings += self.unifiers(stream, source)

    def sinks(self, stream: JsonObject) -> tuple[DeclaredEnd, ...]:
        sinks = stream.get("sinks", [])
        ends = [self.end(sink, stream) for sink in (sinks if isinstance(sinks, list) else [sinks])]
        return tuple(end for end in ends if end is not None)

    def end(self, end: Any, stream: JsonObject) -> DeclaredEnd | None:
        if end is None:
            return None
        if not isinstance(end, JsonObject):
            help_ = 'write {"operatorName": …, "portName": …}'
            self.fault("stream-unfed", f"a stream names {end!r}, which is not a port", help_, self.at(stream))
            return None
        self.known(end, _END, "the end of a stream")
        operator, port = self.text(end, "operatorName"), self.text(end, "portName")
        return None if operator is None or port is None else DeclaredEnd(operator, port, self.at(end))

    def schema(self, stream: JsonObject, name: str) -> Iterator[ParsedEntry]:
        schema = stream.get("schema")
        if schema is not None:
            class_name = schema.get("class") if isinstance(schema, JsonObject) else schema
            address = Address(Element.STREAM, Keyword("schema"), NamePattern(name))
            yield setting(address, class_name, Where(self.shown, stream.line_of("schema")), f"schema of {name}")

    def unifiers(self, stream: JsonObject, source: DeclaredEnd | None) -> Iterator[ParsedEntry]:
        """The attributes of a plan's unifiers, which were set on the output port before them."""
        if source is None:
            return
        for unifier in self.objects(stream, "unifiers", may_be_absent=True):
            what = f"the unifier of {source.operator}.{source.port}"
            port = (PortKind.OUTPUT, source.port)
            yield from self.attributes(unifier, what, Element.UNIFIER, source.operator, port=port)

    # -- what every object needs -------------------------------------------------------------------------------------

    def objects(self, parent: JsonObject, key: str, *, may_be_absent: bool = False) -> Sequence[JsonObject]:
        if key not in parent and may_be_absent:
            return ()
        value = parent.get(key)
        if not isinstance(value, list) or not all(isinstance(one, JsonObject) for one in value):
            where = Where(self.shown, parent.line_of(key))
            self.fault("key-malformed", f"{key!r} is not a list of objects", "write [{…}, {…}]", where)
            return ()
        return value

    def text(self, parent: JsonObject, key: str) -> str | None:
        value = parent.get(key)
        if isinstance(value, str) and value:
            return value
        problem = f"it has no {key!r}" if value is None or value == "" else f"{key!r} is {value!r}, which is not text"
        self.fault("key-malformed", problem, f'write "{key}": "…"', self.at(parent))
        return None

    def known(self, found: JsonObject, fields: tuple[str, ...], what: str) -> None:
        """Report unknown fields. In plans, ignore the fields that only plans have."""
        self.refuse_duplicates(found, what)
        passed = _OF_PLANS[fields] if self.is_plan else ()
        for key in found:
            if key not in fields and key not in passed:
                where = Where(self.shown, found.line_of(key))
                self.fault("key-unmatched", f"{what} has no field {key!r}", did_you_mean(key, fields), where)

    def refuse_duplicates(self, found: JsonObject, what: str) -> None:
        for key in found.twice:
            where = Where(self.shown, found.line_of(key))
            self.fault("key-duplicated", f"{key!r} is set twice in {what}", "keep one of the two", where)

    def at(self, found: JsonObject) -> Where:
        return Where(self.shown, found.line)

    def fault(self, code: Code, problem: str, help_: str, where: Where) -> None:
        self.faults.append(Diagnostic(code, problem, help_, where))
