"""Work items of blocks, as the engine makes them."""

from dataclasses import replace
from typing import Any

from dagkit import Block
from dagkit.engine.address import Address
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import WorkItem
from dagkit_operators import LineReader


def item_of(into: str, block: Block, source: str | None = None) -> WorkItem:
    """What waits of a block that an input operator found."""
    (item,) = Elements(Address(into), LineReader(), Block).work_of(block, (block.block_id,), source)
    return item


def waiting(number: int, start: int, end: int, into: str = "reader.blocks", path: str = "a", **known: Any) -> WorkItem:
    """A stretch of a source that waits; with these fields, if any."""
    return replace(item_of(into, Block(number, path, start, end), path), **known)


def block_in(each: WorkItem) -> Block:
    """The stretch of the block that waits."""
    block = Elements(Address(each.into), LineReader(), Block).back(each)
    assert isinstance(block, Block)
    return block
