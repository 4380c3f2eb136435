"""A block, and the record that keeps it: one line of JSON that says its own hash.

    {"block": {...}, "carry": {...}, "format": "dagkit.block/1", "hash": "f1620...", "objects": {...}}

`block` is the fabric's MetadataBlock. `carry` is ours: pointers that make the whole standing of the chain reachable in
a constant number of reads. Both are under the hash. `objects` holds small slices and checkpoints, each under the hash
that the block names it by, so that a window and its state become durable in one write.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError

from dagkit.ledger.format.events import DatasetId, DatasetKind, Event
from dagkit.ledger.format.faults import ChainBroken, Fault, ValueUnwritable, VersionUnreadable
from dagkit.ledger.format.hashing import Multihash, canonical, hash_of, read_json
from dagkit.ledger.format.outdated import outdated
from dagkit.ledger.format.wire import Instant, Wire

BLOCK_FORMAT: Literal["dagkit.block/1"] = "dagkit.block/1"


class MetadataBlock(Wire):
    """One step of a chain."""

    system_time: Instant
    prev_block_hash: Multihash | None = None
    sequence_number: Annotated[int, Field(ge=0, lt=2**64)]
    event: Event


class Pointer(Wire):
    """A block by its number, and the hash that it must be found to have."""

    seq: Annotated[int, Field(ge=0)]
    hash: Multihash


class Dataset(Wire):
    """What the Seed said."""

    id: DatasetId
    kind: DatasetKind


class Carry(Wire):
    """What the chain knew before this block, as pointers. A pure function of the chain, so it can be checked.

    The last three are written on key blocks only: a data block reaches them through `key`, one read away.
    """

    key: Pointer | None = None
    """The last key block before this one."""
    data: Pointer | None = None
    """The last AddData or ExecuteTransform before this one."""
    slice: Pointer | None = None
    """The last block with new data before this one: the skip pointer over empty windows."""
    state: Pointer | None = None
    """The block before this one that first named the checkpoint which holds here: there its content may be kept."""
    consumed: tuple[int | None, ...] | None = None
    """Of an ExecuteTransform: the number of the last block consumed of each input, in order."""
    dataset: Dataset | None = None
    inputs: tuple[str, ...] | None = None
    """The inputs that the last SetTransform before this block declared."""
    keys: Mapping[str, Pointer] | None = None
    """The last block of each kind before this one."""


class Record(Wire):
    """A block as it is kept."""

    format: Literal["dagkit.block/1"] = BLOCK_FORMAT
    hash: Multihash
    block: MetadataBlock
    carry: Carry
    objects: Mapping[Multihash, str] | None = None

    @property
    def seq(self) -> int:
        return self.block.sequence_number

    @cached_property
    def pointer(self) -> Pointer:
        return Pointer(seq=self.block.sequence_number, hash=self.hash)


def seal(block: MetadataBlock, carry: Carry, objects: Mapping[Multihash, str] | None = None) -> tuple[Record, bytes]:
    """The record of a block, and the line that keeps it."""
    try:
        return _sealed(block, carry, objects)
    except ValueError as error:
        raise unwritable(f"the {block.event.kind}", error) from error


def unwritable(what: str, error: ValueError) -> ValueUnwritable:
    """A value that has no JSON: NaN, text that is not Unicode, or nesting without end."""
    why = str(error)
    if isinstance(error, UnicodeEncodeError):
        why = f"text in it is not Unicode: {error.object[error.start]!r}"
    if isinstance(error, ValidationError):
        why = error.errors(include_url=False, include_input=False)[0]["msg"]
    help_ = "leave it out or spell it otherwise; write a path that is not UTF-8 as a file: URL"
    return ValueUnwritable(Fault("value-unwritable", f"{what} cannot be written as JSON: {why}", help_))


def _sealed(block: MetadataBlock, carry: Carry, objects: Mapping[Multihash, str] | None) -> tuple[Record, bytes]:
    body = f'{{"block":{canonical(block.as_json())},"carry":{canonical(carry.as_json())},"format":"{BLOCK_FORMAT}"'
    name = hash_of(f"{body}}}".encode())
    kept = f',"objects":{canonical(dict(objects))}' if objects else ""
    record = Record(hash=name, block=block, carry=carry, objects=objects or None, format=BLOCK_FORMAT)
    return record, f'{body},"hash":"{name}"{kept}}}\n'.encode()


def unseal(line: bytes, chain: str, seq: int) -> Record:
    """The record that the line keeps; it is what it says it is, byte for byte, or the fault is named."""
    if not line.endswith(b"\n"):
        raise ChainBroken(_torn(chain, seq, len(line)))
    try:
        return _unsealed(read_json(line), line, chain, seq)
    except ValueError as error:  # what can be read may still have no canonical text: half a character, say
        raise ChainBroken(_damaged(chain, seq, f"is not JSON: {error}")) from error


def _unsealed(document: Any, line: bytes, chain: str, seq: int) -> Record:
    if isinstance(document, dict) and "hash" not in document:  # no record of ours, but perhaps another tool's block
        _refuse_outdated(document, chain, seq)
    _own_hash(document, chain, seq)
    record = parse(Record, document, BLOCK_FORMAT, chain, seq)
    _, again = _sealed(record.block, record.carry, record.objects)
    if again != line:
        raise ChainBroken(_damaged(chain, seq, "is not written as the ledger writes: somebody has edited it"))
    for name, content in (record.objects or {}).items():
        if hash_of(content.encode()) != name:
            raise ChainBroken(_damaged(chain, seq, f"keeps an object that is not {name}"))
    if record.seq != seq:
        fault = Fault(
            code="block-misplaced",
            problem=f"the block kept there says that it is number {record.seq}",
            help="a block was moved or swapped; bring the folder back from a copy",
            chain=chain,
            block=seq,
        )
        raise ChainBroken(fault)
    return record


def _own_hash(document: Any, chain: str, seq: int) -> None:
    """Asked before the fields are read: a flipped bit in a name must not look like a field of the future."""
    if not isinstance(document, dict) or document.get("format", BLOCK_FORMAT) != BLOCK_FORMAT:
        return
    body = canonical({part: document.get(part) for part in ("block", "carry", "format")})
    found = hash_of(body.encode())
    if found != document.get("hash"):
        raise ChainBroken(_damaged(chain, seq, f"says its hash is {document.get('hash')}, but it is {found}"))


WireT = TypeVar("WireT", bound=Wire)


def parse(model: type[WireT], document: Any, known: str, chain: str | None = None, seq: int | None = None) -> WireT:
    """The document as a value; a later version or an unknown field is refused by name."""
    said = document.get("format", known) if isinstance(document, dict) else known
    if said != known:
        raise VersionUnreadable(unreadable(str(said), known, chain, seq))
    try:
        return model.model_validate(document)
    except ValidationError as error:
        _refuse_outdated(document, chain, seq)
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] in ("extra_forbidden", "union_tag_invalid"):
            raise VersionUnreadable(_unknown(where, known, chain, seq)) from error
        problem = f"{where or 'the document'} is wrong: {first['msg']}"
        if seq is None:
            raise ChainBroken(
                Fault("manifest-unreadable", problem, "compare it with a manifest that dagkit exported", chain)
            ) from error
        raise ChainBroken(_damaged(chain, seq, f"cannot be read: {problem}")) from error


def _refuse_outdated(document: Any, chain: str | None, seq: int | None) -> None:
    if (fault := outdated(document, chain, seq)) is not None:
        raise VersionUnreadable(fault)


def unreadable(said: str, known: str, chain: str | None = None, seq: int | None = None) -> Fault:
    """A format that this dagkit does not know, and which dagkit does."""
    return Fault(
        code="version-unreadable",
        problem=f"it is written as {said!r}, and this dagkit reads {known!r}",
        help=f"use a dagkit that reads {said!r}; the ledger's ledger.json says from which release on ('readableBy')",
        chain=chain,
        block=seq,
    )


def _unknown(where: str, known: str, chain: str | None, seq: int | None) -> Fault:
    return Fault(
        code="field-unknown",
        problem=f"{where!r} is unknown to {known!r}, so a later dagkit may mean something by it",
        help="use the dagkit that wrote it; the ledger's ledger.json says from which release on ('readableBy')",
        chain=chain,
        block=seq,
    )


def _torn(chain: str, seq: int, size: int) -> Fault:
    return Fault(
        code="block-torn",
        problem=f"the record ends after {size} bytes, in the middle",
        help="if it is the last block, its append never ended: `dagkit ledger gc --repair PATH` sets it aside",
        chain=chain,
        block=seq,
    )


def _damaged(chain: str | None, seq: int, what: str) -> Fault:
    return Fault(
        code="block-damaged",
        problem=f"the record {what}",
        help="the file was changed after it was written; bring it back from a copy of the folder",
        chain=chain,
        block=seq,
    )
