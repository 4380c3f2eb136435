"""Work items of blocks, as the engine makes them."""

from dagkit import Block
from dagkit.engine.address import Address
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import WorkItem
from dagkit_operators import LineReader


def item_of(into: str, block: Block, source: str | None = None) -> WorkItem:
    """What waits of a block that an input operator found."""
    (item,) = Elements(Address(into), LineReader(), Block).work_of(block, (block.block_id,), source)
    return item


def block_in(each: WorkItem) -> Block:
    """The stretch of the block that waits."""
    block = Elements(Address(each.into), LineReader(), Block).back(each)
    assert isinstance(block, Block)
    return block
