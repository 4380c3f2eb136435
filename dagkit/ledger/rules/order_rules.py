"""Rules of every block: its place in the chain, and whether its kind belongs there."""

from collections.abc import Iterator

from dagkit.ledger.format.events import AddData, DatasetKind, ExecuteTransform, Seed, SetTransform
from dagkit.ledger.format.faults import Fault
from dagkit.ledger.rules.proposal import Proposal, fault


def a_seed_stands_first_and_only_there(at: Proposal) -> Iterator[Fault]:
    """A second Seed would give one chain two identities."""
    if not isinstance(at.block.event, Seed):
        return
    if at.standing.head is not None or at.block.prev_block_hash is not None:
        yield fault(
            at,
            "seed-misplaced",
            "a Seed follows another block",
            "create another chain: a chain has one Seed, as its first block",
        )


def a_chain_begins_with_a_seed(at: Proposal) -> Iterator[Fault]:
    """Without a Seed the chain has no identity."""
    event = at.block.event
    if not isinstance(event, Seed) and (at.standing.head is None or at.block.prev_block_hash is None):
        yield fault(at, "seed-missing", f"{event.kind} is in the place of the Seed", "append the Seed first")


def the_previous_block_exists(at: Proposal) -> Iterator[Fault]:
    """A link to an unknown block is a forged history; a link to an older block comes from a late writer."""
    head, linked = at.standing.head, at.block.prev_block_hash
    if head is None or linked is None or linked == head.hash:
        return
    before = at.block.sequence_number - 1
    if 0 <= before < head.seq and at.witness.has_block(before, linked):
        yield fault(
            at,
            "head-moved",
            f"it follows block {before}, but the chain has since grown to block {head.seq}",
            "open the chain again and plan again",
        )
    else:
        yield fault(
            at,
            "previous-missing",
            f"it follows {linked}, which is not in the chain",
            "link it to the head of this chain",
        )


def numbers_follow_without_gap(at: Proposal) -> Iterator[Fault]:
    """The number is the block's place: two blocks with one number would be two histories."""
    wanted = at.standing.next_seq
    if at.block.sequence_number != wanted:
        yield fault(
            at,
            "sequence-broken",
            f"its number is {at.block.sequence_number}, but the next is {wanted}",
            f"number it {wanted}",
        )


def system_time_never_goes_back(at: Proposal) -> Iterator[Fault]:
    """Seeking by time requires it; equal times are allowed."""
    before = at.standing.system_time
    if before is not None and at.block.system_time < before:
        yield fault(
            at,
            "time-reversed",
            f"its time is {at.block.system_time.isoformat()}, but the block before has {before.isoformat()}",
            "use the later of the clock and the time of the block before",
        )


def events_stand_in_chains_of_their_kind(at: Proposal) -> Iterator[Fault]:
    """Roots take data from outside, derivatives from other chains; a chain that did both could not be replayed."""
    event, kind = at.block.event, at.standing.kind
    strange = (isinstance(event, AddData) and kind is DatasetKind.DERIVATIVE) or (
        isinstance(event, ExecuteTransform | SetTransform) and kind is DatasetKind.ROOT
    )
    if strange:
        other = "a root" if kind is DatasetKind.DERIVATIVE else "the derivative"
        yield fault(
            at,
            "event-misplaced",
            f"{event.kind} does not belong in a {kind} chain",
            f"append it to {other} chain",
        )
