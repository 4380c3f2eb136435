"""Verify a ledger: replay every chain, hash every content, account for every byte."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dagkit.ledger.application_ledger import Ledger
from dagkit.ledger.audit.chain_replay import flaws_of, replay
from dagkit.ledger.audit.completeness import RootProof, WindowProof, known_inputs, lists_work
from dagkit.ledger.audit.kept_heads import KeptHead, differing
from dagkit.ledger.audit.presence import missing, missing_inputs
from dagkit.ledger.audit.work_audit import Proven
from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.witness import InputChain
from dagkit.ledger.format.events import DatasetKind, SetTransform
from dagkit.ledger.format.faults import Fault, LedgerCode, LedgerError

LOST: frozenset[LedgerCode] = frozenset({"chain-lost", "chain-swapped"})
"""These faults make every verdict incomplete, also that of one chosen chain."""


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """The verdict on one chain."""

    name: str
    kind: str | None
    blocks: int
    """The number of valid blocks."""
    offset: int | None
    faults: tuple[Fault, ...]
    proven: tuple[Proven, ...] = ()
    """The proven work of each operator."""
    unproven: tuple[str, ...] = ()
    """Sentences about work that may have been done without a record that proves it."""

    @property
    def is_valid(self) -> bool:
        return not any(not fault.is_warning for fault in self.faults)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a ledger."""

    chains: tuple[ChainVerdict, ...]

    @property
    def faults(self) -> tuple[Fault, ...]:
        return tuple(fault for chain in self.chains for fault in chain.faults)

    @property
    def is_valid(self) -> bool:
        return all(chain.is_valid for chain in self.chains)

    @property
    def is_complete(self) -> bool:
        """Whether all work that was found was read, and the ledger proves it."""
        return not self.faults and not self.unproven

    @property
    def proven(self) -> tuple[Proven, ...]:
        return tuple(proven for chain in self.chains for proven in chain.proven)

    @property
    def unproven(self) -> tuple[str, ...]:
        return tuple(words for chain in self.chains for words in chain.unproven)


def verify(ledger: Ledger, *, only: str | None = None, contents: bool = True, kept: Iterable[KeptHead] = ()) -> Verdict:
    """Check every chain up to its first broken block, and kept heads; roots come before the chains that read them."""
    if only is not None and only not in ledger.names():
        # Raises if the name is malformed or unknown.
        ledger.chain(only)
    opened: dict[str, Chain] = {}
    broken: dict[str, ChainVerdict] = {}
    for name in ledger.names():
        try:
            opened[name] = ledger.chain(name)
        except LedgerError as error:
            broken[name] = ChainVerdict(name, None, 0, None, tuple(error.faults))
    for chain in opened.values():
        if chain.kind is DatasetKind.ROOT:
            # A running driver may have appended here before the chains that read this one were opened.
            chain.refresh()
    by_id = {chain.dataset_id: chain for chain in opened.values()}
    order = sorted(opened.values(), key=lambda chain: (chain.kind is DatasetKind.DERIVATIVE, chain.name))
    gone = [fault for error in missing(ledger) for fault in error.faults]
    verdicts = [*broken.values(), *(_chain(chain, by_id, ledger, gone, contents=contents) for chain in order)]
    rewritten = differing(ledger, (head for head in kept if only in (None, head.chain)))
    return Verdict(tuple(_with([*gone, *rewritten], verdicts, only)))


def _with(gone: Iterable[Fault], verdicts: Sequence[ChainVerdict], only: str | None) -> Iterator[ChainVerdict]:
    """The requested verdicts, and one for each missing chain, which may be an input of a requested one."""
    rest: dict[str, list[Fault]] = {}
    for fault in dict.fromkeys(gone):
        rest.setdefault(str(fault.chain), []).append(fault)
    for verdict in verdicts:
        faults = dict.fromkeys([*rest.pop(verdict.name, ()), *verdict.faults])
        if only in (None, verdict.name) or any(fault.code in LOST for fault in faults):
            yield replace(verdict, faults=tuple(faults))
    for name, lacking in sorted(rest.items()):
        yield ChainVerdict(name, None, 0, None, tuple(lacking))


def _chain(
    chain: Chain, by_id: dict[str, Chain], ledger: Ledger, gone: Collection[Fault], *, contents: bool
) -> ChainVerdict:
    faults: list[Fault] = []
    blocks = 0

    def input_chain(dataset_id: str) -> InputChain | None:
        found = by_id.get(dataset_id)
        return None if found is None else found.as_input

    proof = _proof(chain, by_id) if contents else None
    try:
        for _, record in replay(chain, input_chain):
            if contents:
                flaws = list(flaws_of(chain, record))
                faults += flaws
                # The proof reads the same contents, and would end the replay at a damaged one.
                if proof is not None and not flaws:
                    faults += proof.block(record)
            if isinstance(event := record.block.event, SetTransform):
                lacking = (fault for error in missing_inputs(chain, event, ledger) for fault in error.faults)
                faults += (fault for fault in lacking if fault not in gone)
            blocks += 1
        # After a fault, the proof has not seen all blocks, and would report their work as unread.
        if proof is not None and not faults:
            faults += proof.end()
        faults += chain.log.differing()
    except LedgerError as error:
        faults += error.faults
    verdict = ChainVerdict(chain.name, str(chain.kind), blocks, chain.standing.offset, tuple(faults))
    if not contents:
        return replace(verdict, unproven=(f"{chain.name}: its contents were not read",))
    if not isinstance(proof, WindowProof):
        return verdict
    proven = tuple(proven for _, proven in sorted(proof.audit.proven.items()))
    return replace(verdict, proven=proven, unproven=tuple(_unproven(proof)))


def _unproven(proof: WindowProof) -> Iterator[str]:
    for name, count in sorted(proof.unproven.items()):
        items = "1 item" if count == 1 else f"{count} items"
        yield f"{name}: {items}, from which earlier windows may have read without a record of it"


def _proof(chain: Chain, by_id: dict[str, Chain]) -> RootProof | WindowProof | None:
    if chain.kind is DatasetKind.ROOT:
        return RootProof(chain) if lists_work(chain) else None
    return WindowProof(chain, known_inputs(chain, by_id))
