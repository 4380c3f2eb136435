"""Values of no declared type as JSON, and back as they were: what JSON would change says what it is.

Numbers, text, None, and lists and dicts of them stay as they are. A tuple is written `{"~tuple": […]}`, bytes are
`{"~bytes": "…"}` in base64, and so on; a dict that would be taken for one of these, or whose keys are no texts, is
`{"~dict": [[key, value], …]}`.
"""

import base64
import math
from collections.abc import Callable, Mapping
from typing import Any

_MARK = "~"
_AS_THEY_ARE = frozenset({str, int, bool, type(None)})


class Unwritable(ValueError):
    """A value cannot be written so that it comes back as it was."""

    def __init__(self, value: object) -> None:
        super().__init__(f"{value!r:.80}")
        self.value = value


def tagged(value: Any) -> Any:
    """The value as JSON; `Unwritable` where it would not come back."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"~float": repr(value)}
    if kind is list:
        return [tagged(each) for each in value]
    if kind is dict:
        return _of_dict(value)
    if kind is tuple:
        return {"~tuple": [tagged(each) for each in value]}
    if kind in _WRITERS:
        name, write = _WRITERS[kind]
        return {name: write(value)}
    raise Unwritable(value)


def untagged(data: Any) -> Any:
    """The value that `tagged` wrote."""
    if isinstance(data, list):
        return [untagged(each) for each in data]
    if isinstance(data, Mapping):
        name = next(iter(data)) if len(data) == 1 else ""
        if name.startswith(_MARK):
            if name not in _READERS:
                raise ValueError(f"nothing is known of what is written as {name}")
            return _READERS[name](data[name])
        return {key: untagged(each) for key, each in data.items()}
    return data


def _of_dict(value: dict[Any, Any]) -> Any:
    plain = all(type(key) is str for key in value) and not (len(value) == 1 and next(iter(value)).startswith(_MARK))
    if plain:
        return {key: tagged(each) for key, each in value.items()}
    return {"~dict": [[tagged(key), tagged(each)] for key, each in value.items()]}


def _in_order(members: Any) -> list[Any]:
    """Sets in an order that is the same in every process."""
    return sorted(map(tagged, members), key=repr)


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
