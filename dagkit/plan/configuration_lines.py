"""The keys of a configuration as people may read them: with their sources, and without secrets."""

import json
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from dagkit.api.configuration import Config, Entry, Origin
from dagkit.api.secrets import MASK
from dagkit.conf.grammar.property_keys import Address, parse_key
from dagkit.graph import Node, Settings
from dagkit.plan.portable import portable, portable_attributes, portable_properties


@dataclass(frozen=True, slots=True)
class ConfigurationLine:
    """One key from one source, and whether its value is in effect."""

    entry: Entry
    holds: bool
    secret: bool

    @property
    def key(self) -> str:
        return self.entry.key

    @property
    def origin(self) -> Origin:
        return self.entry.origin

    @property
    def shown(self) -> Any:
        """The value, or the visible form of a secret."""
        if self.origin.shown is not None:
            return self.origin.shown
        return MASK if self.secret else portable(self.entry.value)

    @property
    def text(self) -> str:
        return self.shown if isinstance(self.shown, str) else json.dumps(self.shown, ensure_ascii=False, default=str)

    @property
    def source(self) -> str:
        return self.origin.source.name.lower().replace("_", " ")

    @property
    def where(self) -> str:
        return str(self.origin.where or "")

    def fields(self) -> dict[str, Any]:
        """The line as JSON."""
        where = self.origin.where
        return {
            "key": self.key,
            "value": self.shown,
            "secret": self.secret,
            "source": self.source,
            "file": where.file if where else None,
            "line": where.line if where else None,
            "holds": self.holds,
        }


def lines_of(conf: Config, is_secret: Callable[[str], bool]) -> Iterator[ConfigurationLine]:
    """Every entry, in the order of the keys' first appearance; the effective entry comes before those it overrides."""
    same: dict[Hashable, list[Entry]] = {}
    for entry in conf.entries:
        same.setdefault(_identity(entry.key), []).append(entry)
    for entries in same.values():
        for entry in reversed(entries):
            yield ConfigurationLine(entry, entry is entries[-1], entry.origin.shown is not None or is_secret(entry.key))


def _identity(key: str) -> Hashable:
    """A value that is equal for keys that set the same property."""
    address = parse_key(key)
    return address.identity if isinstance(address, Address) else key


DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a property or an attribute as plain data, and its origin."""

    value: Any
    origin: str

    @property
    def is_given(self) -> bool:
        """Whether code or a key set it."""
        return self.origin != DEFAULT


def property_values(node: Node) -> dict[str, Value]:
    """Every property of the operator, by name."""
    values = portable_properties(node.operator, node.property_origins)
    return {name: Value(value, _who(node, name)) for name, value in values.items()}


def attribute_values(settings: Settings) -> Iterator[tuple[str, Value]]:
    """The attributes that were set, by their simple names."""
    values = portable_attributes(settings)
    for attribute, setting in settings.items():
        yield attribute.name, Value(values[attribute.name], str(setting.origin))


def _who(node: Node, name: str) -> str:
    """The origin of the property: the keys that set it or a part of it, else the code, else the default."""
    by_keys = [
        str(origin) for path, origin in node.property_origins.items() if path == name or path.startswith(f"{name}.")
    ]
    if by_keys:
        return ", ".join(by_keys)
    return f"code at {node.where}" if name in node.operator.given else DEFAULT
