"""Readers of blocks whose records have the type of their reader context."""

from collections.abc import Mapping
from typing import Any, Generic

from typing_extensions import TypeVar

from dagkit import OutputPort
from dagkit_operators.payloads import Record
from dagkit_operators.reading.block_reader import BlockReader

V = TypeVar("V", default=Any)


class RecordsReader(BlockReader[Any], Generic[V]):
    """Reads records whose type is that of its reader context, if it has one."""

    messages = OutputPort[Record[V]](main=True)

    def sent_payload(self, port: str, received: Mapping[str, Any]) -> Any:  # noqa: ARG002 - as declared
        context: Any = self.reader_context
        if port != "messages" or self.converts:
            return None
        known: Any = context.record_type if context.sends == "records" else None
        return Record[known] if known is not None else Record[Any]
