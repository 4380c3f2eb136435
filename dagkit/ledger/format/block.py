"""A block, and the record that stores it: one line of JSON that includes its own hash.

    {"block": {...}, "carry": {...}, "format": "dagkit.block/1", "hash": "f1620...", "objects": {...}}

`block` is the fabric's MetadataBlock. `carry` is dagkit's own: pointers that make the whole standing of the chain
reachable in a constant number of reads. The hash covers both. `objects` holds small slices and checkpoints, each under
the hash by which the block names it, so that a window and its state become durable in one write.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, NonNegativeInt, ValidationError

from dagkit.ledger.format.events import DatasetId, DatasetKind, Event
from dagkit.ledger.format.faults import BlockRefused, ChainBroken, Fault, VersionUnreadable
from dagkit.ledger.format.hashing import Multihash, canonical, hash_of, read_json
from dagkit.ledger.format.outdated import outdated
from dagkit.ledger.format.wire import Instant, Wire

BLOCK_FORMAT: Literal["dagkit.block/1"] = "dagkit.block/1"


class MetadataBlock(Wire):
    """One block of a chain, as the fabric defines it."""

    system_time: Instant
    prev_block_hash: Multihash | None = None
    sequence_number: Annotated[int, Field(ge=0, lt=2**64)]
    event: Event


class Pointer(Wire):
    """The number of a block and its expected hash."""

    seq: NonNegativeInt
    hash: Multihash


class Dataset(Wire):
    """The identity and kind that the Seed declared."""

    id: DatasetId
    kind: DatasetKind


class Carry(Wire):
    """The chain's standing before this block, as pointers. It is a pure function of the chain, so it can be checked.

    Only key blocks carry the last three: a data block reaches them through `key`, with one more read.
    """

    key: Pointer | None = None
    """The last key block before this one."""
    data: Pointer | None = None
    """The last AddData or ExecuteTransform before this one."""
    slice: Pointer | None = None
    """The last block with new data before this one: the skip pointer over empty windows."""
    state: Pointer | None = None
    """The earlier block that first named the current checkpoint: its record may hold the content."""
    consumed: tuple[int | None, ...] | None = None
    """For an ExecuteTransform: the number of the last consumed block of each input, in order."""
    dataset: Dataset | None = None
    inputs: tuple[str, ...] | None = None
    """The inputs that the last SetTransform before this block declared."""
    keys: Mapping[str, Pointer] | None = None
    """The last block of each kind before this one."""


class Record(Wire):
    """A block as it is stored."""

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
    """The record of a block, and the line that stores it."""
    try:
        return _sealed(block, carry, objects)
    except ValueError as error:
        raise unwritable(f"the {block.event.kind}", error) from error


def unwritable(what: str, error: ValueError) -> BlockRefused:
    """A value that has no JSON: NaN, text that is not Unicode, or nesting without end."""
    why = str(error)
    if isinstance(error, UnicodeEncodeError):
        why = f"text in it is not Unicode: {error.object[error.start]!r}"
    if isinstance(error, ValidationError):
        why = error.errors(include_url=False, include_input=False)[0]["msg"]
    help_ = "leave the value out or encode it; write a path that is not UTF-8 as a file: URL"
    return BlockRefused(Fault("value-unwritable", f"{what} cannot be written as JSON: {why}", help_))


def _sealed(block: MetadataBlock, carry: Carry, objects: Mapping[Multihash, str] | None) -> tuple[Record, bytes]:
    # The members are in alphabetical order, so this is the canonical JSON of the record: it is both hashed and stored.
    body = f'{{"block":{canonical(block.as_json())},"carry":{canonical(carry.as_json())},"format":"{BLOCK_FORMAT}"'
    name = hash_of(f"{body}}}".encode())
    inline = f',"objects":{canonical(dict(objects))}' if objects else ""
    record = Record(hash=name, block=block, carry=carry, objects=objects or None, format=BLOCK_FORMAT)
    return record, f'{body},"hash":"{name}"{inline}}}\n'.encode()


def unseal(line: bytes, chain: str, seq: int) -> Record:
    """Parse a record and check it byte for byte; raise `ChainBroken` or `VersionUnreadable` if it is invalid."""
    if not line.endswith(b"\n"):
        raise ChainBroken(_torn(chain, seq, len(line)))
    try:
        return _unsealed(read_json(line), line, chain, seq)
    except ValueError as error:  # valid JSON may still have no canonical text: half a character, for example
        raise ChainBroken(_damaged(chain, seq, f"is not JSON: {error}")) from error


def _unsealed(document: Any, line: bytes, chain: str, seq: int) -> Record:
    # Without a hash it is no record of dagkit, but perhaps another tool's block.
    if isinstance(document, dict) and "hash" not in document:
        _refuse_outdated(document, chain, seq)
    # Before the fields: a flipped bit in a name must not be reported as a later version's field.
    _check_hash(document, chain, seq)
    record = parse(Record, document, BLOCK_FORMAT, chain, seq)
    # One value has many JSON texts. If others were accepted, an edit that means the same would go unnoticed.
    if _sealed(record.block, record.carry, record.objects)[1] != line:
        raise ChainBroken(_damaged(chain, seq, "is not written in the ledger's form: the file was edited"))
    for name, content in (record.objects or {}).items():
        if hash_of(content.encode()) != name:
            raise ChainBroken(_damaged(chain, seq, f"keeps an object that is not {name}"))
    if record.seq != seq:
        fault = Fault(
            code="block-misplaced",
            problem=f"the block stored there has the number {record.seq}",
            help="a block was moved or swapped; restore the folder from a backup",
            chain=chain,
            block=seq,
        )
        raise ChainBroken(fault)
    return record


def _check_hash(document: Any, chain: str, seq: int) -> None:
    """Raise `ChainBroken` if the record has not the hash that it records."""
    if not isinstance(document, dict) or document.get("format", BLOCK_FORMAT) != BLOCK_FORMAT:
        return
    body = canonical({part: document.get(part) for part in ("block", "carry", "format")})
    found = hash_of(body.encode())
    if found != document.get("hash"):
        raise ChainBroken(_damaged(chain, seq, f"records the hash {document.get('hash')}, but it is {found}"))


WireT = TypeVar("WireT", bound=Wire)


def parse(model: type[WireT], document: Any, known: str, chain: str | None = None, seq: int | None = None) -> WireT:
    """The document as a value; raise `VersionUnreadable` for a later version or an unknown field."""
    named = document.get("format", known) if isinstance(document, dict) else known
    if named != known:
        raise VersionUnreadable(unreadable(str(named), known, chain, seq))
    try:
        return model.model_validate(document)
    except ValidationError as error:
        # Before the unknown fields, which an outdated block has, too: their help names a dagkit that reads them.
        _refuse_outdated(document, chain, seq)
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] in ("extra_forbidden", "union_tag_invalid"):
            raise VersionUnreadable(_unknown(where, known, chain, seq)) from error
        problem = f"{where or 'the document'} is invalid: {first['msg']}"
        if seq is None:
            raise ChainBroken(
                Fault("manifest-unreadable", problem, "compare it with a manifest that dagkit exported", chain)
            ) from error
        raise ChainBroken(_damaged(chain, seq, f"cannot be read: {problem}")) from error


def _refuse_outdated(document: Any, chain: str | None, seq: int | None) -> None:
    if (fault := outdated(document, chain, seq)) is not None:
        raise VersionUnreadable(fault)


def unreadable(named: str, known: str, chain: str | None = None, seq: int | None = None, *, what: str = "it") -> Fault:
    """The fault of a format that this dagkit does not read, with the release that does."""
    return Fault(
        code="version-unreadable",
        problem=f"{what} is written as {named!r}, but this dagkit reads {known!r}",
        help=f"use a dagkit that reads {named!r}; ledger.json names the first release that can ('readableBy')",
        chain=chain,
        block=seq,
    )


def _unknown(where: str, known: str, chain: str | None, seq: int | None) -> Fault:
    return Fault(
        code="field-unknown",
        problem=f"{where!r} is unknown to {known!r}, so a later dagkit may mean something by it",
        help="use the dagkit that wrote it; ledger.json names the first release that can ('readableBy')",
        chain=chain,
        block=seq,
    )


def _torn(chain: str, seq: int, size: int) -> Fault:
    return Fault(
        code="block-torn",
        problem=f"the record is cut off after {size} bytes",
        help="if it is the last block, its append never ended: `dagkit ledger gc --repair PATH` sets it aside",
        chain=chain,
        block=seq,
    )


def _damaged(chain: str | None, seq: int, what: str) -> Fault:
    return Fault(
        code="block-damaged",
        problem=f"the record {what}",
        help="the file was changed after it was written; restore it from a backup of the folder",
        chain=chain,
        block=seq,
    )
