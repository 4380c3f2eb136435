"""Objects as text: `Class[:argument[:property=value]…]`, separated by commas, or JSON that names a class."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dagkit.conf.sources.written import TOO_DEEP, is_too_deep

CLASS_MARKS = ("@class", "class")
"""The keys under which JSON names the class of an object. Apex writes the first, plans the second."""


class Unfit(ValueError):
    """A value that does not fit. The message continues a sentence after "KEY is VALUE:"."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make an object: the name of its class, the argument of its constructor, and its properties."""

    class_name: str
    argument: str | None = None
    """None: call the constructor without arguments. A space is an argument, an empty text is not."""
    properties: tuple[tuple[str, Any], ...] = ()


_COLON = re.compile(r"(?<!\\):")
_COMMA = re.compile(r"(?<!\\),")
_ESCAPED = re.compile(r"\\([:,])")
_MODULE = re.compile(r"[A-Za-z_][\w.]*")
_CLASS = re.compile(r"[A-Z]\w*")


def parse_object(text: str) -> Recipe:
    """Parse a recipe. In values, colons and commas are escaped with a backslash."""
    class_name, *rest = (_ESCAPED.sub(r"\1", part) for part in _COLON.split(text))
    if not class_name.strip():
        raise Unfit("it must have the name of a class before the first colon")
    if _is_module_with_class(class_name, rest):
        class_name, *rest = f"{class_name}:{rest[0]}", *rest[1:]
    argument = rest[0] if rest and rest[0] else None
    properties = []
    for part in rest[1:]:
        name, equals, value = part.partition("=")
        if part and not (equals and name.strip()):
            raise Unfit(f"{part!r} is not property=value")
        if part:
            properties.append((name.strip(), value))
    return Recipe(class_name.strip(), argument, tuple(properties))


def _is_module_with_class(first: str, rest: list[str]) -> bool:
    """Whether the first colon is part of a name, as in `package.module:Class`: a lower-case word before a class."""
    last = first.rpartition(".")[2]
    return bool(rest and _MODULE.fullmatch(first) and last.islower() and _CLASS.fullmatch(rest[0]))


def split_list(text: str) -> list[str]:
    """The parts between commas, without surrounding spaces. An empty text has none."""
    return [_ESCAPED_COMMA.sub(",", part.strip()) for part in _COMMA.split(text)] if text.strip() else []


_ESCAPED_COMMA = re.compile(r"\\,")


def parse_objects(text: str) -> list[Recipe]:
    """Parse recipes that are separated by commas."""
    return [parse_object(part) for part in split_list(text)]


def object_in_json(data: Mapping[str, Any]) -> Recipe | None:
    """The recipe in a JSON object: `{"@class": name, …}`, `{"class": name, …}` or `{name: {…}}`; None otherwise."""
    for mark in CLASS_MARKS:
        if isinstance(data.get(mark), str):
            return Recipe(data[mark], None, tuple((k, v) for k, v in data.items() if k != mark))
    if len(data) == 1:
        ((name, properties),) = data.items()
        if isinstance(properties, Mapping) and _CLASS.fullmatch(re.split(r"[.$:]", name)[-1]):
            return Recipe(name, None, tuple(properties.items()))
    return None


def parse_json(text: str) -> Any:
    """Parse JSON. Raise `Unfit` if the text is not JSON."""
    try:
        value = json.loads(text)
    except ValueError as malformed:
        raise Unfit(f"it must be JSON: {malformed}") from malformed
    except RecursionError as malformed:
        raise Unfit(TOO_DEEP) from malformed
    if is_too_deep(value):
        raise Unfit(TOO_DEEP)
    return value
