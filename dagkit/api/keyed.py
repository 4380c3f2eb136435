"""Values by key, which are restored when they are read and written again when they changed."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import Any, TypeVar

from pydantic import JsonValue

from dagkit.api.adapters import Adapter, Untyped, copied
from dagkit.api.tagged import Unwritable
from dagkit.ground.overlays import Measure, Overlay

K = TypeVar("K")
V = TypeVar("V")

SavedKeys = Mapping[str, Any]
"""Values by key as JSON: the JSON text of each key, with the list of its value and its routing code."""


class Keyed(MutableMapping[K, V]):
    """Values by key. Reading a missing key creates its value. Each key keeps the routing code of its first item.

    Saved values are restored when they are read, so that a window costs what it touches and not what there is. A key
    whose equality its JSON does not decide, such as a tuple, and iterating restore all of them.
    """

    def __init__(self, make: Callable[[], V], stored: "Stored | None" = None) -> None:
        self._make = make
        self._values: dict[K, V] = {}
        self._stored = stored or _NOTHING_STORED
        self._overlay = Overlay.of(self._stored.saved)
        self._taken: set[str] = set()
        """The texts of the saved keys that were restored, or deleted since."""
        self._is_in_order = not self._stored.saved
        """Whether all values were restored, in their order."""
        self._read: dict[K, str] = {}
        """The restored keys that were not deleted since, with their texts."""
        self.codes: dict[K, int] = {}
        """The routing code of the item that created each key. The key moves to the partition that owns the code."""
        self.current_code: int | None = None
        """The routing code of the current item; None between items."""
        self.code_of: Callable[[Any], int] | None = None
        """Gives the routing code of a key while a batch is processed whose items are routed by the same keys."""

    def __getitem__(self, key: K) -> V:
        if key not in self._values and not self._restore(key):
            self[key] = self._make()
        return self._values[key]

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self._values and not self._restore(key):
            self.codes[key] = self._code_of_new(key)
        self._values[key] = value

    def _code_of_new(self, key: K) -> int:
        if self.current_code is not None:
            return self.current_code
        if self.code_of is not None:
            return self.code_of(key)
        raise KeyError(f"key {key!r} is new, and only the processing of an item can add a key")

    def __delitem__(self, key: K) -> None:
        if key not in self._values and not self._restore(key):
            raise KeyError(key)
        del self._values[key]
        del self.codes[key]
        self._read.pop(key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._values or self._restore(key)

    # The next three are those of Mapping, which read a missing key by `[]`. Here that would create it.

    def get(self, key: K, default: Any = None) -> Any:
        """The value of a key, or the default. It adds no key."""
        return self._values[key] if key in self else default

    def pop(self, key: K, *default: Any) -> Any:
        """Forget a key and return its value. Of a missing key, return the default, or raise KeyError without one."""
        if key not in self:
            if not default:
                raise KeyError(key)
            return default[0]
        value = self._values[key]
        del self[key]
        return value

    def setdefault(self, key: K, default: Any = None) -> Any:
        """The value of a key; a missing key gets this one first."""
        if key not in self:
            self[key] = default
        return self._values[key]

    def __iter__(self) -> Iterator[K]:
        self._restore_all()
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values) + self._unread

    @property
    def _unread(self) -> int:
        """How many saved entries were not restored."""
        return len(self._stored.saved) - len(self._taken)

    def clear(self) -> None:
        self._values.clear()
        self.codes.clear()
        self._taken, self._read, self._is_in_order = set(self._stored.saved), {}, True

    def put(self, key: K, value: V, code: int) -> None:
        """Add a key with its value and routing code, from another partition or a checkpoint."""
        # Restored first: an entry that stays unread would be counted beside this value, and would later bring back its
        # old code.
        if key not in self._values:
            self._restore(key)
        self._values[key] = value
        self.codes[key] = code

    def saved(self, keys: Adapter, values: Adapter) -> SavedKeys:
        """The values as JSON. It costs what was read; if nothing changed, it is the same object as before."""
        before = self._stored.saved
        # Each saved key that was restored is in both, unless it was deleted.
        gone = self._taken - set(self._read.values()) if len(self._taken) > len(self._read) else ()
        changed: dict[str, Any] = {}
        for key, value in self._values.items():
            text = self._read[key] if key in self._read else _text_of(keys.dump(key))
            entry = [values.dump(value), self.codes[key]]
            if key not in self._read or not _is_same_json(before[text], entry):
                changed[text] = entry
        return self._overlay.changed(gone, changed).plain() if gone or changed else before

    def due(self, most: int, measure: Measure) -> list[K]:
        """The keys of the saved values whose number is at most this one, and all keys that were read or set before.

        `measure` takes a value as it is saved, as JSON. A window that asks for them does not restore the others.
        """
        for text in list(self._overlay.up_to(most, _OfSaved(measure))):
            if text not in self._taken:
                self._take(text, self._stored.saved[text])
        return list(self._values)

    def total(self, measure: Measure) -> int:
        """The sum of the numbers of all values, without restoring them.

        `measure` takes a value as it is, and as it is saved.
        """
        of_saved = _OfSaved(measure)
        restored = sum(of_saved(self._stored.saved[text]) for text in self._taken)
        return self._overlay.total(of_saved) - restored + sum(map(measure, self._values.values()))

    def _restore(self, key: object) -> bool:
        """Restore the saved value of a key. Return whether there is one."""
        if not self._unread:
            return False
        for text in self._stored.texts_of(key):
            if text in self._stored.saved and text not in self._taken:
                self._take(text, self._stored.saved[text])
                return True
        # A key such as a tuple may be equal to a saved one that has another text.
        if not self._stored.is_found_by_text(key):
            self._restore_all()
        return key in self._values

    def _restore_all(self) -> None:
        """Restore all values, in the order in which they were saved; those that came since are behind them."""
        if self._is_in_order:
            return
        self._is_in_order = True
        values, self._values = self._values, {}
        read = {text: key for key, text in self._read.items()}
        for text, entry in self._stored.saved.items():
            if text not in self._taken:
                self._take(text, entry)
            elif text in read:
                self._values[read[text]] = values.pop(read[text])
        self._values.update(values)

    def _take(self, text: str, entry: Any) -> None:
        key, value, code = self._stored.read(text, entry)
        self._values[key], self.codes[key] = value, code
        self._read[key] = text
        self._taken.add(text)


@dataclass(frozen=True, slots=True)
class _OfSaved:
    """The number of a saved entry: that of its value."""

    measure: Measure

    def __call__(self, entry: Any) -> int:
        return self.measure(entry[0])


@dataclass(frozen=True, slots=True)
class Stored:
    """Saved values by key, and how they are restored."""

    saved: SavedKeys
    keys: Adapter
    values: Adapter

    def read(self, text: str, entry: Any) -> tuple[Any, Any, int]:
        """A key, its value and its code. The value is a copy: `saved` is compared with it later."""
        value, code = entry
        is_plain = text[0] == '"' and "\\" not in text  # as the texts of nearly all keys, which are parsed faster so
        key = text[1:-1] if is_plain else json.loads(text)
        return self.keys.load(key), self.values.load(copied(value)), int(code)

    def is_found_by_text(self, key: object) -> bool:
        """Whether `texts_of` returns the texts of all keys that are equal to this one."""
        return isinstance(self.keys, Untyped) and type(key) in (str, int, bytes)

    def texts_of(self, key: object) -> Iterable[str]:
        """The texts of a key, and of the bool and the floats that are equal to it, if it can be written as a key."""
        if type(key) is str and isinstance(self.keys, Untyped):
            return (_text_of(key),)
        return self._texts_of(key)

    def _texts_of(self, key: object) -> Iterator[str]:
        # Equal keys such as 1, 1.0 and True, or 0 and -0.0, have different texts. Without these, an operator would have
        # two values for one key.
        same = [float(key), -float(key), bool(key)] if type(key) is int and abs(key) < _ABOVE_FLOATS else []
        with suppress(Unwritable):
            yield from (_text_of(self.keys.dump(each)) for each in (key, *same) if each == key)


_ABOVE_FLOATS = 2**1023
"""Smaller integers can be converted to a float."""
_NOTHING_STORED = Stored({}, Untyped(), Untyped())


def _text_of(key: JsonValue) -> str:
    return encode_basestring_ascii(key) if type(key) is str else json.dumps(key, sort_keys=True)


def _is_same_json(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are written alike: 1 and True are equal in Python."""
    return one == other and json.dumps(one) == json.dumps(other)


def saved_keys(saved: Any) -> SavedKeys:
    """Saved values by key; earlier releases wrote a list of keys, values and codes."""
    if isinstance(saved, Mapping):
        return saved
    return {_text_of(key): [value, code] for key, value, code in saved}
