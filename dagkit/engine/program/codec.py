"""Encode items as JSON and decode them, so that they outlive their process."""

from typing import Any

from pydantic import JsonValue

from dagkit.api.adapters import Typed, adapter_of, copied
from dagkit.api.tagged import Unwritable
from dagkit.errors import RunFailure, Scene
from dagkit.schema import spelled


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
            return self._adapter.dump(item)
        except Unwritable as error:
            raise ItemUnwritable(self.port, self.payload, item) from error

    def back(self, data: JsonValue) -> Any:
        """Decode an item. `data` stays as it is, whatever becomes of the item."""
        return self._adapter.load(copied(data))
