"""Encode items as JSON and decode them, so that they outlive their process."""

from itertools import pairwise
from typing import Any

from pydantic import JsonValue

from dagkit.api.adapters import Typed, adapter_of
from dagkit.api.tagged import Unwritable
from dagkit.errors import RunFailure, Scene
from dagkit.schema import spelled

_ORDERED = "~ordered"
"""Stands for a dict whose keys are not sorted: the ledger sorts those of all objects, so that equal ones look alike."""


class ItemUnwritable(RunFailure):
    """An item that must be stored cannot be written such that it reads back unchanged."""

    code = "item-unwritable"

    def __init__(self, port: str, payload: Any, item: Any) -> None:
        super().__init__(
            f"{port} emitted {item!r:.80}, which cannot be kept as {spelled(payload)}",
            "declare the port with a type that can be written as JSON and read back: a dataclass, a pydantic model, "
            "numbers, text, lists of them",
            Scene(port.partition(".")[0]),
        )


class JsonCodec:
    """Items of one port."""

    def __init__(self, port: str, payload: Any) -> None:
        self.port = port
        self.payload = payload
        adapter = adapter_of(payload)
        has_none = isinstance(adapter, Typed) and not adapter.has_schema
        self._adapter = adapter_of(Any) if has_none else adapter  # by the type of each item: some can be written

    def of(self, item: Any) -> JsonValue:
        """The item as JSON."""
        try:
            data = self._adapter.dump(item)
        except Unwritable as error:
            raise ItemUnwritable(self.port, self.payload, item) from error
        ordered: JsonValue = _with_order(item, data)
        return ordered

    def back(self, data: JsonValue) -> Any:
        """Decode an item. `data` stays as it is, whatever becomes of the item."""
        return self._adapter.load(_in_order(data))


def _with_order(item: Any, data: Any) -> Any:
    """The JSON of an item, with the order of the keys of its dicts where they are not sorted."""
    if type(item) is dict and isinstance(data, dict):
        if data.keys() == item.keys():
            members = {name: _with_order(item[name], data[name]) for name in item}
            is_sorted = _ORDERED not in members and all(one < other for one, other in pairwise(members))
            return members if is_sorted else {_ORDERED: [[name, member] for name, member in members.items()]}
        if isinstance(pairs := data.get("~dict"), list):
            values = zip(item.values(), pairs, strict=True)
            return {"~dict": [[key, _with_order(value, member)] for value, (key, member) in values]}
    if type(item) in (list, tuple):
        if isinstance(data, list):
            return [_with_order(each, member) for each, member in zip(item, data, strict=True)]
        if isinstance(data, dict) and isinstance(parts := data.get("~tuple"), list):
            return {"~tuple": [_with_order(each, part) for each, part in zip(item, parts, strict=True)]}
    return data


def _in_order(data: JsonValue) -> Any:
    """A copy of the JSON, with each dict in its order.

    A copy, because pydantic passes on members without a declared type as they are: a change of the item would change
    what is stored.
    """
    if isinstance(data, list):
        return [_in_order(member) for member in data]
    if isinstance(data, dict):
        if list(data) == [_ORDERED]:
            pairs: Any = data[_ORDERED]
            return {name: _in_order(member) for name, member in pairs}
        return {name: _in_order(member) for name, member in data.items()}
    return data
