"""What is set on a placed operator, and by whom; secrets are shown as they were referred to, never as they are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dagkit.graph import Node, Settings
from dagkit.plan.portable import portable


@dataclass(frozen=True, slots=True)
class Value:
    """What a property or an attribute holds as plain data, and who set it."""

    value: Any
    origin: str


def property_values(node: Node) -> dict[str, Value]:
    """Every property of the operator by name."""
    hidden = {path: origin.shown for path, origin in node.property_origins.items() if origin.shown is not None}
    return {
        name: Value(_masked(portable(getattr(node.operator, name, None)), name, hidden), _who(node, name))
        for name in type(node.operator).model_fields
    }


def attribute_values(settings: Settings) -> Iterator[tuple[str, Value]]:
    """The attributes that somebody set, by their simple names."""
    for attribute, setting in settings.items():
        hidden = setting.origin.shown
        yield attribute.name, Value(portable(setting.value) if hidden is None else hidden, str(setting.origin))


def _masked(value: Any, path: str, hidden: Mapping[str, str]) -> Any:
    """The value with what is hidden put in the place of secrets, however deep they lie."""
    if path in hidden:
        return hidden[path]
    if isinstance(value, Mapping):
        return {key: _masked(part, f"{path}.{key}", hidden) for key, part in value.items()}
    if isinstance(value, list):
        return [_masked(part, f"{path}.{index}", hidden) for index, part in enumerate(value)]
    return value


def _who(node: Node, name: str) -> str:
    """Whoever set the property or a part of it."""
    by_keys = [
        str(origin) for path, origin in node.property_origins.items() if path == name or path.startswith(f"{name}.")
    ]
    if by_keys:
        return ", ".join(by_keys)
    return f"code at {node.where}" if name in node.operator.given else "default"
