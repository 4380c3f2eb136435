"""An application's folder: its chains by name, and a marker with the version that can read them.

PATH/ledger/ledger.json
PATH/ledger/chains/<name>/{blocks,segments,data,checkpoints,planned}
PATH/heads/<name>
"""

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal
from urllib.parse import quote, unquote

from dagkit.ground.clock import Clock, SystemClock
from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.log import HEADS, Log
from dagkit.ledger.chain.witness import InputChain
from dagkit.ledger.format.block import parse, unreadable
from dagkit.ledger.format.events import (
    DataSchema,
    DatasetKind,
    SetDataSchema,
    SetTransform,
    SqlQueryStep,
    Transform,
    TransformInput,
)
from dagkit.ledger.format.faults import BlockRefused, ChainBroken, ChainNotFound, Fault, VersionUnreadable
from dagkit.ledger.format.hashing import canonical, hash_of, read_json
from dagkit.ledger.format.recorded_work import PARTS_SCHEMA, WORK_SCHEMA
from dagkit.ledger.format.wire import Wire
from dagkit.ledger.stores import KeyMissing, KeyTaken, MemoryStore, Place, Store, open_store

LEDGER_FORMAT: Literal["dagkit.ledger/1"] = "dagkit.ledger/1"
READABLE_BY = "dagkit 0.1.0 or later"
_FOLDER = "ledger"
_MARKER = f"{_FOLDER}/ledger.json"
_LONGEST_NAME = 240
"""Most filesystems limit a name to 255 bytes, and an export adds a file extension."""


class Marker(Wire):
    """The format of the ledger, and the first dagkit release that can read it."""

    format: Literal["dagkit.ledger/1"] = LEDGER_FORMAT
    readable_by: str = READABLE_BY


class Ledger:
    """The chains of one application."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self.store = store
        self.clock = clock or SystemClock()
        self._chains: dict[str, Chain] = {}

    @classmethod
    def create(cls, place: Place, *, clock: Clock | None = None, durable: bool = True) -> "Ledger":
        """Open the ledger of the application's folder; create it if there is none."""
        store = open_store(place, durable=durable)
        try:
            _check(store)
        except ChainNotFound:
            _mark(store)
        return cls(store, clock)

    @classmethod
    def open(cls, place: Place, *, clock: Clock | None = None, durable: bool = True) -> "Ledger":
        """Open an existing ledger; raise `VersionUnreadable` unless this dagkit reads its version."""
        store = open_store(place, durable=durable)
        _check(store)
        return cls(store, clock)

    def names(self) -> list[str]:
        """The names of the chains: roots and derivatives, in alphabetical order."""
        return [name for name in self._folders() if not self._log(name).is_unborn()]

    def unborn(self) -> list[str]:
        """The names of folders without a Seed: the driver was killed while it created the chain."""
        return [name for name in self._folders() if self._log(name).is_unborn()]

    def _folders(self) -> list[str]:
        """The names of chains that have a folder or a noted head; entries that are not encoded names are ignored."""
        return sorted({*_named(self.store.folders(f"{_FOLDER}/chains")), *_noted(self.store)})

    def _log(self, name: str) -> Log:
        return Log(self.store, folder_of(name), name)

    def chain(self, name: str) -> Chain:
        """The chain of this name; it is opened once and cached."""
        if name not in self._chains:
            chain = self._unopened(name)
            chain.reopen()
            self._chains[name] = chain
        return self._chains[name]

    def root(self, name: str) -> Chain:
        """The chain of an input operator; created, with its schema, if it does not exist."""
        chain = self._open_or_create(name, DatasetKind.ROOT)
        self._declare(chain, SetDataSchema(schema=WORK_SCHEMA))
        return chain

    def application(
        self, name: str, inputs: Sequence[str], transform: Transform, schema: DataSchema = PARTS_SCHEMA
    ) -> Chain:
        """The chain of the application, which reads the named chains; a changed declaration is appended again."""
        chain = self._open_or_create(name, DatasetKind.DERIVATIVE)
        declared = tuple(TransformInput(dataset_ref=self.chain(i).dataset_id, alias=i) for i in inputs)
        self._declare(chain, SetTransform(inputs=declared, transform=transform))
        self._declare(chain, SetDataSchema(schema=schema))
        return chain

    def create_chain(self, name: str, kind: DatasetKind) -> Chain:
        """Create a chain that holds only its Seed."""
        chain = self._unopened(name)
        chain.create(kind, new_dataset_id())
        self._chains[name] = chain
        return chain

    def adopt(self, name: str) -> Chain:
        """An empty chain of this name, for an import to fill; raise `BlockRefused` if the chain exists."""
        chain = self._unfilled(name)
        self._chains[name] = chain
        return chain

    def rehearsal(self, names: Sequence[str]) -> "Ledger":
        """A ledger in memory in which to try an import; raise `BlockRefused` if one of the names exists here."""
        for name in names:
            self._unfilled(name)
        other = Ledger(MemoryStore(), self.clock)
        # Imported chains may read chains of this ledger.
        other._chains.update(self._chains)
        return other

    def _unopened(self, name: str) -> Chain:
        return Chain(self.store, folder_of(name), name, clock=self.clock, chains=self._input)

    def _unfilled(self, name: str) -> Chain:
        chain = self._unopened(name)
        if not chain.log.is_unborn():
            problem = "the chain exists already, or its head is noted"
            raise BlockRefused(Fault("chain-exists", problem, "import into an empty folder", name))
        return chain

    def by_id(self, dataset_id: str) -> Chain | None:
        """The open chain of a dataset id, if one is open."""
        # An adopted chain has no dataset before its first block.
        found = (c for c in self._chains.values() if c.standing.dataset and c.dataset_id == dataset_id)
        return next(found, None)

    def inputs_of(self, chain: Chain) -> Mapping[str, str]:
        """The aliases of a chain's inputs, by dataset id."""
        declared = chain.last("SetTransform")
        event = None if declared is None else declared.block.event
        return {i.dataset_ref: i.alias or "" for i in event.inputs} if isinstance(event, SetTransform) else {}

    def refresh(self) -> None:
        """Read the blocks that other writers have appended to the open chains."""
        for chain in self._chains.values():
            chain.refresh()

    def forget(self) -> None:
        """Drop the cached chains: each is opened again at its next use."""
        self._chains.clear()

    def _input(self, dataset_id: str) -> InputChain | None:
        """The chain of an id, as it stands now; search the open chains, then the aliases in transforms."""
        known = self.by_id(dataset_id)
        if known is not None:
            known.refresh()
            return known.as_input
        aliases = (self.inputs_of(c).get(dataset_id) for c in list(self._chains.values()) if c.standing.inputs)
        name = next((alias for alias in aliases if alias), None)
        if name is None:
            return None
        try:
            # Opened, and not only asked for its hint, which may be missing.
            chain = self.chain(name)
        except ChainNotFound:
            return None
        return chain.as_input if chain.dataset_id == dataset_id else None

    def _open_or_create(self, name: str, kind: DatasetKind) -> Chain:
        try:
            chain = self.chain(name)
        except ChainNotFound:
            return self.create_chain(name, kind)
        if chain.kind is not kind:
            help_ = "choose another name; or, if folders of chains were swapped, put them back"
            raise BlockRefused(Fault("event-misplaced", f"it is a {chain.kind} chain, not a {kind} one", help_, name))
        chain.keep_head()
        return chain

    def _declare(self, chain: Chain, event: SetDataSchema | SetTransform) -> None:
        last = chain.last(event.kind)
        if last is None or last.block.event != event:
            chain.append(event)


def transform_of(program: str, version: str) -> Transform:
    """A dagkit program in the fabric's form: the engine's name, its version, and one query."""
    return Transform(engine="dagkit", version=version, queries=(SqlQueryStep(query=program),))


def new_dataset_id() -> str:
    """A random dataset id; it is not derived from a key, so it cannot sign."""
    return f"did:odf:{hash_of(secrets.token_bytes(32))}"


def folder_of(name: str) -> str:
    """The folder of a chain, percent-encoded, so that every operator name gives a safe folder name."""
    if not _is_name(name):
        shown = repr(name if len(name) <= _LONGEST_NAME else f"{name[:40]}...")
        help_ = f"name it as its operator is named, in Unicode, with at most {_LONGEST_NAME} bytes once percent-encoded"
        raise BlockRefused(Fault("chain-name-malformed", f"{shown} cannot name a chain", help_))
    return f"{_FOLDER}/chains/{_encoded(name)}"


def _noted(store: Store) -> list[str]:
    """The names of the chains whose heads are noted."""
    return _named(store.names(HEADS))


def _named(files: Iterable[str]) -> list[str]:
    """The chain names that these file or folder names encode; other names are ignored."""
    return [name for file in files if _is_name(name := unquote(file)) and _encoded(name) == file]


def _is_name(name: str) -> bool:
    try:
        return bool(name) and not name.startswith(".") and len(_encoded(name)) <= _LONGEST_NAME
    except UnicodeEncodeError:
        return False


def _encoded(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E")


def _mark(store: Store) -> None:
    """Create the marker; another driver may create it at the same time."""
    try:
        store.create(_MARKER, (json.dumps(Marker().as_json()) + "\n").encode())
    except KeyTaken:
        _check(store)


def _check(store: Store) -> None:
    content = _marker(store)
    try:
        document = read_json(content)
    except ValueError as error:
        raise ChainBroken(
            Fault("manifest-unreadable", "ledger.json is not JSON", f"write {canonical(Marker().as_json())} into it")
        ) from error
    named = document.get("format") if isinstance(document, dict) else None
    if named != LEDGER_FORMAT:
        fault = unreadable(str(named), LEDGER_FORMAT, what=f"the ledger in {store}")
        readers = document.get("readableBy") if isinstance(document, dict) else None
        help_ = f"use {readers}" if readers else fault.help
        raise VersionUnreadable(Fault(fault.code, fault.problem, help_))
    parse(Marker, document, LEDGER_FORMAT)


def _marker(store: Store) -> bytes:
    """The content of ledger.json; without it there is no ledger (`ChainNotFound`) or it was lost (`ChainBroken`)."""
    try:
        return store.get(_MARKER)
    except KeyMissing:
        known = ", ".join(sorted(_noted(store)))
    if not known:
        raise ChainNotFound(
            Fault(
                "chain-missing",
                f"{store} holds no ledger",
                "give the application's folder: .dagkit/NAME, unless the application was launched with another",
            )
        )
    # Another driver may have created the ledger meanwhile: it writes the marker before the heads.
    if store.exists(_MARKER):
        return _marker(store)
    raise ChainBroken(
        Fault(
            "chain-lost",
            f"{_MARKER} is missing from {store}, but {HEADS}/ lists chains: {known}",
            f"restore the folder {_FOLDER} from a backup; to start over and process all input a second time, delete "
            f"all of {store}",
        )
    )
