"""Chains as Open Data Fabric manifests, out and in again.

    OUT/export.json                     the chains, with the hash of each head
    OUT/<chain>.yaml (or .json)         one manifest to a document: {kind: MetadataBlock, version: 1, content: ...}
    OUT/<chain>/{data,checkpoints}/...  the contents, each under its hash

What a block carries beyond the fabric's fields is not exported: it is made again, and the hashes prove it the same.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import yaml

from dagkit.ledger.block import MetadataBlock, Record, parse
from dagkit.ledger.chain import Chain
from dagkit.ledger.events import AddData, DataEvent, DatasetKind, ExecuteTransform, Seed
from dagkit.ledger.faults import BlockRefused, ChainBroken, Fault, VersionUnreadable
from dagkit.ledger.ledger import Ledger
from dagkit.ledger.wire import Wire

Form = Literal["yaml", "json"]

EXPORT_FORMAT: Literal["dagkit.export/1"] = "dagkit.export/1"
MANIFEST_VERSION: Literal[1] = 1

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ExportedChain(Wire):
    """One chain of an export."""

    name: str
    kind: DatasetKind
    file: str
    blocks: int
    head: str


class Export(Wire):
    """What an export holds."""

    format: Literal["dagkit.export/1"] = EXPORT_FORMAT
    chains: tuple[ExportedChain, ...]


class Manifest(Wire):
    """The wrapper that the fabric puts around every resource."""

    kind: Literal["MetadataBlock"] = "MetadataBlock"
    version: Literal[1] = MANIFEST_VERSION
    content: MetadataBlock


def manifest_of(record: Record) -> dict[str, Any]:
    """The block as a manifest."""
    return {"kind": "MetadataBlock", "version": MANIFEST_VERSION, "content": record.block.as_json()}


def export(ledger: Ledger, out: Path, form: Form = "yaml") -> Export:
    """Every chain lies in `out`, up to the block that was its last when this began."""
    out.mkdir(parents=True, exist_ok=True)
    said = Export(chains=tuple(_export(ledger.chain(name), out, form) for name in ledger.names()))
    (out / "export.json").write_text(json.dumps(said.as_json(), indent=2) + "\n", encoding="utf-8")
    return said


def _export(chain: Chain, out: Path, form: Form) -> ExportedChain:
    safe = quote(chain.name, safe=" ")
    count, head = 0, chain.head.hash
    with (out / f"{safe}.{form}").open("w", encoding="utf-8") as file:
        for record in chain.records():
            file.write(_text(manifest_of(record), form))
            _export_contents(chain, record, out / safe)
            count += 1
    return ExportedChain(name=chain.name, kind=chain.kind, file=f"{safe}.{form}", blocks=count, head=head)


def _text(manifest: dict[str, Any], form: Form) -> str:
    if form == "json":
        return json.dumps(manifest, ensure_ascii=False) + "\n"
    return str(yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True, explicit_start=True))


def _export_contents(chain: Chain, record: Record, folder: Path) -> None:
    event = record.block.event
    if not isinstance(event, AddData | ExecuteTransform):
        return
    if event.new_data is not None:
        name = event.new_data.physical_hash
        _keep(folder / "data" / name, chain.objects.get("data", name, record))
    left = event.new_checkpoint
    if left is not None and left.physical_hash != event.prev_checkpoint:
        _keep(folder / "checkpoints" / left.physical_hash, chain.objects.get("checkpoints", left.physical_hash, record))


def _keep(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def import_into(ledger: Ledger, source: Path) -> Export:
    """Every chain of the export is in the ledger, judged block by block, with the head exported; or none of it is."""
    said = parse(Export, _document(source / "export.json"), EXPORT_FORMAT)
    roots_first = sorted(said.chains, key=lambda chain: chain.kind is DatasetKind.DERIVATIVE)
    # Whether the head is the one exported is known only at the end, when a chain that was cut or changed would stand
    # committed and look well; so all of it is judged in memory before the first block is created.
    tried = ledger.rehearsal([chain.name for chain in said.chains])
    for target in (tried, ledger):
        for chain in roots_first:
            _import(target, chain, source)
    return said


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ChainBroken(_unreadable(str(path), str(error))) from error


def _import(ledger: Ledger, said: ExportedChain, source: Path) -> None:
    chain: Chain | None = None
    cursors: dict[str, Iterator[Record]] = {}
    for block in read_blocks(source / said.file, said.name):
        if chain is None:
            if not isinstance(block.event, Seed):
                raise BlockRefused(
                    Fault("seed-missing", "it does not begin with a Seed", "export it again", said.name, 0)
                )
            chain = ledger.adopt(said.name)
        chain.append_block(
            block, _contents(block, source / quote(said.name, safe=" ")), numbers=_numbers(ledger, block, cursors)
        )
    if chain is None or chain.head.hash != said.head:
        found = "nothing" if chain is None else chain.head.hash
        problem = f"its head is {found}, and {said.head} was exported"
        raise BlockRefused(Fault("hash-mismatch", problem, "the export was cut or changed: export it again", said.name))


def read_blocks(path: Path, chain: str) -> Iterator[MetadataBlock]:
    """The blocks of a file of manifests."""
    try:
        with path.open(encoding="utf-8") as file:
            documents = yaml.load_all(file, Loader=_Loader) if path.suffix == ".yaml" else map(json.loads, file)
            for document in documents:
                yield _block(document, chain)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ChainBroken(_unreadable(str(path), str(error))) from error


def _block(document: Any, chain: str) -> MetadataBlock:
    version = document.get("version") if isinstance(document, dict) else None
    if version != MANIFEST_VERSION:
        fault = Fault(
            "version-unreadable",
            f"the manifest is of version {version!r}, and this dagkit reads version {MANIFEST_VERSION}",
            "use a dagkit that reads this version, or export it as version 1",
            chain,
        )
        raise VersionUnreadable(fault)
    manifest = parse(Manifest, document, "MetadataBlock manifest, version 1", chain)
    if manifest.content.as_json() != document["content"]:
        problem = "a block says null, or writes a time or a kind in another way, where a field must be left out"
        raise ChainBroken(_unreadable(chain, problem))
    return manifest.content


def _contents(block: MetadataBlock, folder: Path) -> list[bytes]:
    event = block.event
    if not isinstance(event, AddData | ExecuteTransform):
        return []
    return [path.read_bytes() for path in _named(event, folder) if path.exists()]


def _named(event: DataEvent, folder: Path) -> Iterator[Path]:
    if event.new_data is not None:
        yield folder / "data" / event.new_data.physical_hash
    left = event.new_checkpoint
    if left is not None and left.physical_hash != event.prev_checkpoint:
        yield folder / "checkpoints" / left.physical_hash


def _numbers(ledger: Ledger, block: MetadataBlock, cursors: dict[str, Iterator[Record]]) -> dict[str, int]:
    """Where the input blocks lie that the window consumed: each input is followed once, side by side."""
    if not isinstance(block.event, ExecuteTransform):
        return {}
    found: dict[str, int] = {}
    for given in block.event.query_inputs:
        chain = ledger.by_id(given.dataset_id)
        if given.new_block_hash is None or chain is None:
            continue
        cursor = cursors.setdefault(given.dataset_id, chain.records())
        for record in cursor:
            if record.hash == given.new_block_hash:
                found[record.hash] = record.seq
                break
    return found


def _unreadable(what: str, why: str) -> Fault:
    return Fault("manifest-unreadable", f"{what} cannot be read: {why}", "export it again")
