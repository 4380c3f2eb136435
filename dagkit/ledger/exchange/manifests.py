"""Export and import of chains as Open Data Fabric manifests.

    OUT/export.json                              the chains, with the hash of each head
    OUT/chains/<chain>.yaml (or .json)           in each document {kind: MetadataBlock, version: 1, content: ...}
    OUT/contents/<chain>/{data,checkpoints}/...  the contents, each under its hash

dagkit's own fields of a block are not exported: the import computes them again, and the hashes prove them equal.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import yaml

from dagkit.ledger.application_ledger import Ledger
from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.contents import contents_named
from dagkit.ledger.format.block import MetadataBlock, Record, parse
from dagkit.ledger.format.events import DatasetKind, ExecuteTransform, Seed
from dagkit.ledger.format.faults import BlockRefused, ChainBroken, Fault, VersionUnreadable
from dagkit.ledger.format.hashing import canonical, read_json
from dagkit.ledger.format.outdated import outdated
from dagkit.ledger.format.wire import Wire
from dagkit.ledger.stores.store import refused

Form = Literal["yaml", "json"]

EXPORT_FORMAT: Literal["dagkit.export/1"] = "dagkit.export/1"
MANIFEST_VERSION: Literal[1] = 1

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(yaml.composer.Composer, _Parser):  # type: ignore[misc]
    """As safe as its parser, and refuses what an export never writes: anchors and duplicate keys.

    Nodes are composed in Python, where nesting that is too deep is an error; in C it would crash the process.
    """

    def __init__(self, stream: Any) -> None:
        _Parser.__init__(self, stream)
        yaml.composer.Composer.__init__(self)

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "an alias", self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, **how: Any) -> Any:
        found = super().construct_mapping(node, **how)
        if len(found) != len(node.value):
            raise yaml.constructor.ConstructorError(None, None, "a duplicate key", node.start_mark)
        return found


class ExportedChain(Wire):
    """One chain of an export."""

    name: str
    kind: DatasetKind
    file: str
    blocks: int
    head: str


class Export(Wire):
    """The content of export.json."""

    format: Literal["dagkit.export/1"] = EXPORT_FORMAT
    chains: tuple[ExportedChain, ...]


class Manifest(Wire):
    """The wrapper that the fabric uses for every resource."""

    kind: Literal["MetadataBlock"] = "MetadataBlock"
    version: Literal[1] = MANIFEST_VERSION
    content: MetadataBlock


def manifest_of(record: Record) -> dict[str, Any]:
    """The block as a manifest."""
    return Manifest(content=record.block).as_json()


def export(ledger: Ledger, out: Path, form: Form = "yaml") -> Export:
    """Write every chain to `out`, up to the block that was its last at the start."""
    try:
        (out / "chains").mkdir(parents=True, exist_ok=True)
        export_ = Export(chains=tuple(_export(ledger.chain(name), out, form) for name in ledger.names()))
        (out / "export.json").write_text(json.dumps(export_.as_json(), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise refused(str(out), error) from error
    return export_


def _file(chain: str, form: str) -> str:
    """The path of a chain's file, in a folder of its own: a chain's name could equal that of another exported file."""
    return f"chains/{quote(chain, safe=' ')}.{form}"


def _shelves(folder: Path, chain: str) -> Path:
    return folder / "contents" / quote(chain, safe=" ")


def _export(chain: Chain, out: Path, form: Form) -> ExportedChain:
    count, head, name = 0, chain.head.hash, _file(chain.name, form)
    with (out / name).open("w", encoding="utf-8") as file:
        for record in chain.records():
            file.write(_text(manifest_of(record), form))
            _export_contents(chain, record, _shelves(out, chain.name))
            count += 1
    return ExportedChain(name=chain.name, kind=chain.kind, file=name, blocks=count, head=head)


def _text(manifest: dict[str, Any], form: Form) -> str:
    if form == "json":
        return json.dumps(manifest, ensure_ascii=False) + "\n"
    return str(yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True, explicit_start=True))


def _export_contents(chain: Chain, record: Record, folder: Path) -> None:
    for shelf, content in contents_named(record.block.event):
        path = folder / shelf / content.physical_hash
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chain.objects.get(shelf, content.physical_hash, record))


def import_into(ledger: Ledger, source: Path) -> Export:
    """Import every chain of the export, checking each block and the exported heads; import all chains or none."""
    export_ = _read_export(source / "export.json")
    # The rules ask for the blocks that a derivative chain has consumed.
    roots_first = sorted(export_.chains, key=lambda chain: chain.kind is DatasetKind.DERIVATIVE)
    # The heads can be compared only at the end, when a cut or changed chain would already be committed and look valid.
    # So the whole import is first tried in memory.
    tried = ledger.rehearsal([chain.name for chain in export_.chains])
    for target in (tried, ledger):
        for chain in roots_first:
            _import(target, chain, source)
    return export_


def _read_export(path: Path) -> Export:
    try:
        document = read_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ChainBroken(_unreadable(str(path), str(error))) from error
    export_ = parse(Export, document, EXPORT_FORMAT)
    if canonical(export_.as_json()) != canonical(document):
        raise ChainBroken(_unreadable(str(path), "it is not in the form that an export writes"))
    for chain in export_.chains:
        # Any other path may lead out of the export.
        if chain.file not in (_file(chain.name, "yaml"), _file(chain.name, "json")):
            raise ChainBroken(_unreadable(str(path), f"{chain.file!r} is not the file of {chain.name!r}"))
    return export_


def _import(ledger: Ledger, entry: ExportedChain, source: Path) -> None:
    chain: Chain | None = None
    cursors: dict[str, Iterator[Record]] = {}
    for block in read_blocks(source / entry.file, entry.name):
        if chain is None:
            if not isinstance(block.event, Seed):
                raise BlockRefused(
                    Fault("seed-missing", "it does not begin with a Seed", "export it again", entry.name, 0)
                )
            chain = ledger.adopt(entry.name)
        chain.append_block(
            block, _contents(block, _shelves(source, entry.name)), numbers=_numbers(ledger, block, cursors)
        )
    if chain is None or chain.head.hash != entry.head:
        head = "nothing" if chain is None else chain.head.hash
        problem = f"its head is {head}, but {entry.head} was exported"
        raise BlockRefused(
            Fault("hash-mismatch", problem, "the export was cut or changed: export it again", entry.name)
        )
    found = ExportedChain(
        name=entry.name, kind=chain.kind, file=entry.file, blocks=chain.standing.next_seq, head=chain.head.hash
    )
    if found != entry:
        problem = (
            f"it is a {chain.kind} chain of {found.blocks} blocks, but export.json says {entry.kind} and {entry.blocks}"
        )
        raise BlockRefused(Fault("manifest-unreadable", problem, "the export was changed: export it again", entry.name))


def read_blocks(path: Path, chain: str) -> Iterator[MetadataBlock]:
    """The blocks of a file of manifests."""
    try:
        with path.open(encoding="utf-8") as file:
            documents = yaml.load_all(file, Loader=_Loader) if path.suffix == ".yaml" else map(read_json, file)
            for document in documents:
                yield _block(document, chain)
    except RecursionError as error:
        raise ChainBroken(_unreadable(str(path), "it is nested too deeply")) from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ChainBroken(_unreadable(str(path), str(error))) from error


def _block(document: Any, chain: str) -> MetadataBlock:
    # Before the version check: the fabric counts versions of manifests differently.
    if (old := outdated(document, chain)) is not None:
        raise VersionUnreadable(old)
    version = document.get("version") if isinstance(document, dict) else None
    if type(version) is not int or version != MANIFEST_VERSION:
        fault = Fault(
            "version-unreadable",
            f"the manifest has version {version!r}, but this dagkit reads version {MANIFEST_VERSION}",
            "use a dagkit that reads this version, or export it as version 1",
            chain,
        )
        raise VersionUnreadable(fault)
    manifest = parse(Manifest, document, "MetadataBlock manifest, version 1", chain)
    if not _is_written_so(manifest, document):
        problem = "a manifest has null instead of an absent field, lacks its kind, or writes a value in another form"
        raise ChainBroken(_unreadable(chain, problem))
    return manifest.content


def _is_written_so(manifest: Manifest, document: Any) -> bool:
    """Compare as text: in Python 1, 1.0 and True are equal; YAML may hold values that JSON cannot, such as a time."""
    try:
        return canonical(manifest.as_json()) == canonical(document)
    except TypeError:
        return False


def _contents(block: MetadataBlock, folder: Path) -> list[bytes]:
    paths = [folder / shelf / content.physical_hash for shelf, content in contents_named(block.event)]
    try:
        return [path.read_bytes() for path in paths if path.exists()]
    except OSError as error:
        raise ChainBroken(_unreadable(str(folder), str(error))) from error


def _numbers(ledger: Ledger, block: MetadataBlock, cursors: dict[str, Iterator[Record]]) -> dict[str, int]:
    """The numbers of the input blocks that the window consumed; each input is read once, in step with the windows."""
    if not isinstance(block.event, ExecuteTransform):
        return {}
    numbers: dict[str, int] = {}
    for part in block.event.query_inputs:
        chain = ledger.by_id(part.dataset_id)
        if part.new_block_hash is None or chain is None:
            continue
        cursor = cursors.setdefault(part.dataset_id, chain.records())
        for record in cursor:
            if record.hash == part.new_block_hash:
                numbers[record.hash] = record.seq
                break
    return numbers


def _unreadable(what: str, why: str) -> Fault:
    return Fault("manifest-unreadable", f"{what} cannot be read: {why}", "export it again")
