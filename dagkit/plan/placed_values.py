"""The values set on a placed operator, with their origins; a secret is shown as its reference, never as its value."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dagkit.graph import Node, Settings
from dagkit.plan.portable import portable_attributes, portable_properties

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
