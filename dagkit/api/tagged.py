"""Convert values without a declared type to JSON and back, unchanged. Values that JSON cannot represent get a tag.

Numbers, text, None, and lists and dicts of them are written without a tag. A tuple is written `{"~tuple": […]}`, bytes
are `{"~bytes": "…"}` in base64, and so on. A dict that looks like a tagged value, or has a key that is not text, is
written `{"~dict": [[key, value], …]}`.
"""

import base64
import math
from collections.abc import Callable, Mapping
from typing import Any

_MARK = "~"
_UNTAGGED = frozenset({str, int, bool, type(None)})


class Unwritable(ValueError):
    """A value cannot be saved so that it would be restored unchanged."""

    def __init__(self, value: object) -> None:
        super().__init__(f"{value!r:.80}")
        self.value = value


def tagged(value: Any) -> Any:
    """The value as JSON. Raise Unwritable if it has a class that `untagged` could not restore."""
    # Exact classes: a value of a subclass would be restored as one of its base.
    kind = type(value)
    if kind in _UNTAGGED:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"~float": repr(value)}
    if kind is list:
        return [tagged(item) for item in value]
    if kind is dict:
        return _of_dict(value)
    if kind is tuple:
        return {"~tuple": [tagged(item) for item in value]}
    if kind in _WRITERS:
        name, write = _WRITERS[kind]
        return {name: write(value)}
    if kind in _FIELDS:
        name, fields = _FIELDS[kind]
        return {name: [tagged(getattr(value, field)) for field in fields]}
    raise Unwritable(value)


def tag(kind: type, name: str, *fields: str) -> None:
    """Write values of a payload class under a tag. Calling the class with these fields must make an equal value."""
    assert name.startswith(_MARK), f"{name} does not begin with {_MARK}"
    assert name not in _READERS, f"{name} is the tag of another class"
    _FIELDS[kind] = name, fields
    _READERS[name] = lambda data: kind(*map(untagged, data))


def is_tagged(kind: type) -> bool:
    """Whether values of a class are written with a tag of this class."""
    return kind in _FIELDS


def untagged(data: Any) -> Any:
    """The value, from the JSON that `tagged` returned. Raise ValueError for an unknown tag."""
    if isinstance(data, list):
        return [untagged(item) for item in data]
    if isinstance(data, Mapping):
        name = next(iter(data)) if len(data) == 1 else ""
        if name.startswith(_MARK):
            if name not in _READERS:
                raise ValueError(f"{name} is not a known tag")
            return _READERS[name](data[name])
        return {key: untagged(item) for key, item in data.items()}
    return data


def member(data: Any, place: int) -> Any:
    """The JSON of a member of a list or a tuple, whose JSON this is, with or without a tag."""
    return (data["~tuple"] if isinstance(data, Mapping) else data)[place]


def _of_dict(value: dict[Any, Any]) -> Any:
    plain = all(type(key) is str for key in value) and not (len(value) == 1 and next(iter(value)).startswith(_MARK))
    if plain:
        return {key: tagged(item) for key, item in value.items()}
    return {"~dict": [[tagged(key), tagged(item)] for key, item in value.items()]}


def _in_order(members: Any) -> list[Any]:
    """The members of a set as JSON, in an order that is the same in every process."""
    return sorted(map(tagged, members), key=repr)


_FIELDS: dict[type, tuple[str, tuple[str, ...]]] = {}
"""The tag and the fields of each payload class that `tag` added."""
_WRITERS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    bytes: ("~bytes", lambda value: base64.b64encode(value).decode()),
    set: ("~set", _in_order),
    frozenset: ("~frozenset", _in_order),
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "~tuple": lambda data: tuple(map(untagged, data)),
    "~bytes": base64.b64decode,
    "~float": float,
    "~dict": lambda data: {untagged(key): untagged(value) for key, value in data},
    "~set": lambda data: set(map(untagged, data)),
    "~frozenset": lambda data: frozenset(map(untagged, data)),
}
