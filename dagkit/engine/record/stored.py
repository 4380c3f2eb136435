"""What the ledger stores of checkpoints and of the state of input operators: mostly what changed. Pure.

A checkpoint has parts that describe one window, and parts that are carried from window to window, which may be large.
A block holds the first as they are. Of the others it holds the change since an earlier block, and it names the blocks
that hold the rest: a whole checkpoint, and the changes after it. A new change takes over the changes before it that are
at most twice as long as itself, or short. So each block names about log2(n) others for n bytes, and each byte is
written about log2(n) times at most; a checkpoint that is taken over to its beginning is stored as a whole.

Of the state of an input operator, a long text that grew is stored as what was added. Each block of the chain holds one
part of such a text, and names the earlier blocks that hold the parts before it. A new part also takes over the earlier
parts that are not longer than itself. So a text of n additions has about log2(n) parts: resuming reads that many
blocks, and each character is written about log2(n) times at most.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, TypeAdapter

from dagkit.engine.program.differences import CHANGED, Change, applied, composed, difference
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.waiting import Waiting
from dagkit.ground.overlays import Overlay

# A splitter remembers sixteen characters of each file. For a million files found a thousand at a time, whole texts
# would write 8 GB for a list of 16 MB; this writes 100 MB, and compares 16 MB in 2 ms. Rejected: a state class to which
# authors append, which would need two forms of saving, one for the ledger and one for tests and changed properties.
EARLIER_TEXTS = "@earlier"
"""The key of a stored state that lists, for each text in parts, the earlier blocks and the lengths of their parts.

States are named by Python identifiers, so that no state has this name.
"""
WHOLE = 4096
"""Texts up to this length are stored whole."""


class Part(NamedTuple):
    """A part of a text or of a checkpoint: the number of the block that stores it, and its length in characters."""

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
            document[EARLIER_TEXTS] = {name: parts for name, parts in earlier.items() if parts}
        return replace(self, texts=texts), document

    @classmethod
    def read(
        cls, document: Mapping[str, Any], seq: int, read: Callable[[int], Mapping[str, Any]]
    ) -> "tuple[StoredState, dict[str, Any]]":
        """The stored state of block `seq`, and the whole state; `read` returns the document of an earlier block."""
        state = {name: value for name, value in document.items() if name != EARLIER_TEXTS}
        earlier, texts = document.get(EARLIER_TEXTS, {}), {}
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


EARLIER: Final = "earlier"
"""The member of a stored checkpoint that lists the blocks with its earlier parts, and the lengths of these."""
CHANGE: Final = "change"
"""The member that holds the change since the last of those; absent if there is none."""
CARRIED: Final = ("state", "queue", "files", "receipts", "read")
"""The members of a checkpoint of which a block holds the change."""
SHORT = 4096
"""Parts up to this length are taken over by the next change: blocks that they would save are not worth a read."""

Document = Mapping[str, Any]
"""A checkpoint, or what a block stores of one. Its members may hold work items and models beside JSON."""

_ITEM: TypeAdapter[Any] = TypeAdapter(WorkItem)


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """The last stored checkpoint, and the parts that it consists of, in order."""

    carried: Mapping[str, Any]
    parts: tuple[Part, ...]

    def after(self, document: Document, seq: int, read: Callable[[int], Document]) -> "tuple[StoredCheckpoint, str]":
        """Return the same once block `seq` stores a later checkpoint, and the text that the block is to store.

        `read` returns what an earlier block stores.
        """
        carried = carried_of(document)
        parts = [part for part in self.parts if len(self.parts) > 1 or part.length > SHORT]
        change = _change(self.carried, carried) if parts else None
        written = "" if change is None else text_of(change)
        while change is not None and parts and parts[-1].length <= max(SHORT, 2 * len(written)):
            taken = parts.pop()
            if parts and (earlier := read(taken.seq).get(CHANGE)) is not None:
                change = composed(earlier, change)
                written = text_of(change)
        if not parts:
            whole = text_of(document)
            return StoredCheckpoint(carried, (Part(seq, len(whole)),)), whole
        text = text_of({**own_of(document), EARLIER: parts})
        if change is None:
            return StoredCheckpoint(carried, tuple(parts)), text
        # the change may be long, and was written above: the text is joined, so that it is not encoded twice
        text = f'{text[:-1]},"{CHANGE}":{written}}}'
        return StoredCheckpoint(carried, (*parts, Part(seq, len(written)))), text


class CheckpointReader:
    """Reads the stored checkpoints of one chain. Those that follow one another cost what they store."""

    def __init__(self, read: Callable[[int], Document]) -> None:
        self._read = read
        """Returns what an earlier block stores."""
        self._known: dict[int, Mapping[str, Any]] = {}
        """The carried members of the last checkpoint, and of the blocks that it names, by block."""

    def whole(self, stored: Document, seq: int) -> dict[str, Any]:
        """Return the checkpoint of which block `seq` stores this."""
        carried = self._carried(stored, seq)
        named = {seq, *(at for at, _ in stored.get(EARLIER, ()))}
        self._known = {at: known for at, known in self._known.items() if at in named}
        return own_of(stored) | _members(carried)

    def _carried(self, stored: Document, seq: int) -> Mapping[str, Any]:
        if seq not in self._known:
            earlier = stored.get(EARLIER)
            if not earlier:
                self._known[seq] = carried_of(stored)
            else:
                last = earlier[-1][0]
                before = self._known.get(last) or self._carried(self._read(last), last)
                change = stored.get(CHANGE)
                self._known[seq] = before if change is None else applied(before, change)
        return self._known[seq]


def own_of(stored: Document) -> dict[str, Any]:
    """The members of a checkpoint that describe its own window."""
    return {name: value for name, value in stored.items() if name not in (EARLIER, CHANGE, *CARRIED)}


def parts_of(stored: Document, seq: int, length: int) -> tuple[Part, ...]:
    """The parts of a checkpoint of which block `seq` stores this, in so many characters."""
    earlier, change = tuple(Part(*part) for part in stored.get(EARLIER, ())), stored.get(CHANGE)
    if not earlier:
        return (Part(seq, length),)
    return earlier if change is None else (*earlier, Part(seq, len(text_of(change))))


def carried_of(document: Document) -> Mapping[str, Any]:
    """The members of a checkpoint that are carried, in the form in which changes describe them."""
    by_operator: Mapping[str, Sequence[Any]] = document.get("state") or {}
    by_slot = {name: {str(slot): one for slot, one in enumerate(states)} for name, states in by_operator.items()}
    return {name: by_slot if name == "state" else document.get(name) or () for name in CARRIED}


def _change(before: Mapping[str, Any], after: Mapping[str, Any]) -> Change | None:
    """The change of what is carried. The queue knows its own: it may be long, and is not compared."""
    changes = {name: difference(before[name], value) for name, value in after.items() if name != "queue"}
    if isinstance(before["queue"], Waiting) and isinstance(after["queue"], Waiting):
        changes["queue"] = after["queue"].change_since(before["queue"])
    else:
        changes["queue"] = difference(list(before["queue"]), list(after["queue"]))
    made = {name: change for name, change in changes.items() if change is not None}
    return {CHANGED: made} if made else None


def _members(carried: Mapping[str, Any]) -> dict[str, Any]:
    """The members of the checkpoint with these."""
    members = {name: value for name, value in carried.items() if value}
    if "state" in members:
        members["state"] = {name: list(by_slot.values()) for name, by_slot in members["state"].items()}
    return members


def text_of(value: Any) -> str:
    """JSON in ASCII: state may hold text from files that are not valid UTF-8. The order of members is kept."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False, default=plain)


def plain(value: Any) -> Any:
    """Return what JSON can hold of a work item, a model or an overlay in a checkpoint."""
    if isinstance(value, Waiting):
        return list(value)
    if isinstance(value, Overlay):
        return value.whole()
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else _ITEM.dump_python(value, mode="json")
