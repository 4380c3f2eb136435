"""Work items of blocks, as the engine makes them, and a count of the calls that something costs."""

import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dagkit import Block
from dagkit.engine.program.address import Address
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


def calls_of(ask: Callable[[], object]) -> int:
    """How many functions were called: a cost that does not depend on the machine."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    gc.disable()  # hypothesis has functions called by it
    sys.setprofile(count)
    try:
        ask()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls
