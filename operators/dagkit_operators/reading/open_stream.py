"""The stream of a block that was read, kept open for the block that follows it in the file."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from dagkit import Block
from dagkit_operators.contexts.reader_context import ReaderContext
from dagkit_operators.filesystem.access import Seekable


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """The block that is read, its open stream, and the copy of the reader context that reads it."""

    block: Block
    stream: Seekable
    context: ReaderContext[Any]
    opens: ExitStack

    def precedes(self, block: Block) -> bool:
        """Whether another block follows this one in the same file."""
        was = self.block
        if block.previous_block_id is None or block.previous_block_id != was.block_id:
            return False
        return (block.source, block.start, block.facts) == (was.source, was.end, was.facts)


class OpenStream:
    """At most one open stream, with the block that was read from it to its end."""

    def __init__(self) -> None:
        self.keeps = False
        """Whether a stream stays open: something must close it at the end."""
        self._last: OpenBlock | None = None

    @contextmanager
    def of(
        self,
        block: Block,
        setup: Callable[[Block], AbstractContextManager[Seekable]],
        make: Callable[[], ReaderContext[Any]],
        is_done: Callable[[], bool],
    ) -> Iterator[OpenBlock]:
        """Open the stream of a block, or take that of the block before it.

        The stream stays open if `is_done` returns True at the end: the block was read to its end.
        """
        opened = self._take(block)
        if opened is None:
            self.close()
            opens = ExitStack()
            opened = OpenBlock(block, opens.enter_context(setup(block)), make(), opens)
        # The stream closes at the end, also after a failure, unless it is taken over below.
        with opened.opens.pop_all() as opens:
            yield opened
            # A block that was split is not done: another reader has its end, and the next block begins behind that.
            if self.keeps and not block.last and is_done():
                self._last = OpenBlock(block, opened.stream, opened.context, opens.pop_all())

    def close(self) -> None:
        """Close the stream, if one is open."""
        last, self._last = self._last, None
        if last is not None:
            last.opens.close()

    def _take(self, block: Block) -> OpenBlock | None:
        last = self._last
        if last is None or not last.precedes(block):
            return None
        self._last = None
        return last
