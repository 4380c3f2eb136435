"""The state of an input operator as its root chain stores it: a long text that grew is stored as what was added. Pure.

Each block of the chain holds, of such a text, one part, and names the earlier blocks that hold the parts before it. A
new part also takes over the earlier parts that are not longer than itself. So a text of n additions has about log2(n)
parts: resuming reads that many blocks, and each character is written about log2(n) times at most.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

# A splitter remembers sixteen characters of each file. For a million files found a thousand at a time, whole texts
# would write 8 GB for a list of 16 MB; this writes 100 MB, and compares 16 MB in 2 ms. Rejected: a state class to which
# authors append, which would need two forms of saving, one for the ledger and one for tests and changed properties.
EARLIER = "@earlier"
"""The key of a stored state that lists, for each text in parts, the earlier blocks and the lengths of their parts.

States are named by Python identifiers, so that no state has this name.
"""
WHOLE = 4096
"""Texts up to this length are stored whole."""


class Part(NamedTuple):
    """A part of a text: the number of the block that holds it, and its length in characters."""

    seq: int
    length: int


@dataclass(frozen=True, slots=True)
class Grown:
    """A text, and the stored parts that it consists of, in order."""

    text: str
    parts: tuple[Part, ...]

    def after(self, text: str, seq: int) -> "tuple[Grown, str]":
        """The same for a text that begins with this one, once `seq` holds the returned part of it."""
        length, parts = len(text) - len(self.text), list(self.parts)
        while parts and length and parts[-1].length <= length:
            length += parts.pop().length
        own = [Part(seq, length)] if length else []
        return Grown(text, (*parts, *own)), text[len(text) - length :]


@dataclass(frozen=True, slots=True)
class StoredState:
    """The last stored state of one operator."""

    texts: Mapping[str, Grown]
    """The texts that were long enough to be stored in parts."""

    def after(self, state: Mapping[str, Any], seq: int) -> "tuple[StoredState, dict[str, Any]]":
        """The same after block `seq`, and the document that this block is to hold."""
        document, texts = dict(state), {}
        for name, value in state.items():
            if not isinstance(value, str) or len(value) <= WHOLE:
                continue
            before = self.texts.get(name)
            if before is None or not value.startswith(before.text):
                before = Grown("", ())
            texts[name], document[name] = before.after(value, seq)
        earlier = {
            name: [[part.seq, part.length] for part in grown.parts if part.seq != seq] for name, grown in texts.items()
        }
        if any(earlier.values()):
            document[EARLIER] = {name: parts for name, parts in earlier.items() if parts}
        return replace(self, texts=texts), document

    @classmethod
    def read(
        cls, document: Mapping[str, Any], seq: int, read: Callable[[int], Mapping[str, Any]]
    ) -> "tuple[StoredState, dict[str, Any]]":
        """The stored state of block `seq`, and the whole state; `read` returns the document of an earlier block."""
        state = {name: value for name, value in document.items() if name != EARLIER}
        earlier, texts = document.get(EARLIER, {}), {}
        for name, value in state.items():
            if not isinstance(value, str):
                continue
            parts = [Part(*part) for part in earlier.get(name, ())]
            pieces = [str(read(part.seq)[name]) for part in parts] + [value]
            lengths = [len(piece) for piece in pieces[:-1]]
            assert lengths == [part.length for part in parts], f"block {seq} names parts of {name} of other lengths"
            state[name] = "".join(pieces)
            texts[name] = Grown(state[name], (*parts, *([Part(seq, len(value))] if value else ())))
        return cls(texts), state
