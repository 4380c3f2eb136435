"""Items as JSON, and back: how what was emitted outlives the process that emitted it."""

from typing import Any, ClassVar

from pydantic import JsonValue, PydanticSchemaGenerationError, TypeAdapter, ValidationError

from dagkit.errors import DagkitError
from dagkit.schema import spelled


class ItemUnwritable(DagkitError):
    """An item has to be kept, and cannot be written so that it comes back as it was."""

    exit_code: ClassVar[int] = 7

    def __init__(self, port: str, payload: Any, item: Any) -> None:
        super().__init__(
            f"{port} emitted {item!r:.80}, which cannot be kept as {spelled(payload)}; declare the port with a type "
            "that can be written as JSON and read back: a dataclass, a pydantic model, numbers, text, lists of them"
        )


class Written:
    """Items of one port."""

    def __init__(self, port: str, payload: Any) -> None:
        self.port = port
        self.payload = payload
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(payload)
        except PydanticSchemaGenerationError:
            self._adapter = TypeAdapter(Any)

    def of(self, item: Any) -> JsonValue:
        """The item as JSON."""
        try:
            data: JsonValue = self._adapter.dump_python(item, mode="json", warnings="error")
            back = self._adapter.validate_python(data)
            if type(back) is type(item) and back == item:
                return data
        except (ValueError, ValidationError):
            pass  # told below, with the item
        raise ItemUnwritable(self.port, self.payload, item)

    def back(self, data: JsonValue) -> Any:
        """The item that was written."""
        return self._adapter.validate_python(data)
