"""Rules of a transform's inputs: every input in the declared order, `(prev, new]`, from the end of the last window."""

from collections.abc import Iterator

from dagkit.ledger.format.events import ExecuteTransform, ExecuteTransformInput, changed_checkpoint
from dagkit.ledger.format.faults import Fault
from dagkit.ledger.rules.proposal import Proposal, fault
from dagkit.ledger.rules.standing import Position, Standing

_FROM_START = Position()
_REPLAN = "plan the window from the head of the chain"


def _inputs(at: Proposal) -> tuple[ExecuteTransformInput, ...]:
    event = at.block.event
    return event.query_inputs if isinstance(event, ExecuteTransform) else ()


def _consumed(standing: Standing, part: ExecuteTransformInput) -> Position:
    """How far an input was consumed before."""
    return standing.consumed.get(part.dataset_id, _FROM_START)


def a_transform_is_declared_before_it_runs(at: Proposal) -> Iterator[Fault]:
    """Without a SetTransform it is unknown what ran, and on which inputs."""
    if isinstance(at.block.event, ExecuteTransform) and "SetTransform" not in at.standing.keys:
        yield fault(at, "transform-missing", "no transform was declared", "append a SetTransform first")


def inputs_are_those_declared(at: Proposal) -> Iterator[Fault]:
    """Each window lists every input, in the declared order."""
    read = tuple(i.dataset_id for i in _inputs(at))
    declared = at.standing.inputs
    if isinstance(at.block.event, ExecuteTransform) and "SetTransform" in at.standing.keys and read != declared:
        yield fault(
            at,
            "inputs-mismatch",
            f"it reads {', '.join(read) or 'nothing'}, but {', '.join(declared)} are declared",
            "name every declared input, in the declared order, also those without new data",
        )


def consumption_begins_where_it_ended(at: Proposal) -> Iterator[Fault]:
    """A gap would lose data; an overlap would process it twice."""
    for part in _inputs(at):
        last = _consumed(at.standing, part)
        if (part.prev_block_hash, part.prev_offset) == (last.block_hash, last.offset):
            continue
        if last == _FROM_START:
            yield fault(
                at,
                "input-unfounded",
                f"input {part.dataset_id} is marked as consumed before, but it was not",
                "leave prevBlockHash and prevOffset out of the first execution",
            )
        else:
            yield fault(
                at,
                "input-mismatch",
                f"input {part.dataset_id} begins after offset {part.prev_offset} of block {part.prev_block_hash}, "
                f"but the last execution ended at offset {last.offset} of block {last.block_hash}",
                _REPLAN,
            )


def consumption_moves_or_is_absent(at: Proposal) -> Iterator[Fault]:
    """An interval `(x, x]` is empty, and an empty interval is written by absence."""
    for part in _inputs(at):
        stays = part.new_block_hash is not None and part.new_block_hash == part.prev_block_hash
        if stays or (part.new_offset is not None and part.new_offset == part.prev_offset):
            yield fault(
                at,
                "input-unmoved",
                f"input {part.dataset_id} does not advance",
                "leave newBlockHash and newOffset out if nothing was read",
            )


def consumption_runs_forward(at: Proposal) -> Iterator[Fault]:
    """Going back would consume data again."""
    for part in _inputs(at):
        new, prev = part.new_offset, part.prev_offset
        back = new is not None and prev is not None and new < prev
        if back or _block_goes_back(at, part):
            yield fault(
                at,
                "input-reversed",
                f"input {part.dataset_id} goes back from offset {prev} to {new}"
                if back
                else f"input {part.dataset_id} goes back to an earlier block",
                _REPLAN,
            )


def _block_goes_back(at: Proposal, part: ExecuteTransformInput) -> bool:
    last = _consumed(at.standing, part)
    if part.new_block_hash is None or last.seq is None or part.new_block_hash == last.block_hash:
        return False
    block = at.witness.input_block(part.dataset_id, part.new_block_hash)
    return block is not None and block.seq < last.seq


def offsets_come_with_their_block(at: Proposal) -> Iterator[Fault]:
    """New records are in a new block, so a new offset requires a new block."""
    for part in _inputs(at):
        if part.new_offset is not None and part.new_block_hash is None:
            yield fault(
                at,
                "input-blockless",
                f"input {part.dataset_id} consumes up to offset {part.new_offset} but names no block",
                "give newBlockHash with newOffset",
            )


def consumed_blocks_exist_and_end_there(at: Proposal) -> Iterator[Fault]:
    """`newOffset` is the last offset at `newBlockHash`: windows consume whole blocks, and checkpoints hold the rest."""
    # The fabric has no form for an offset within a block, and does not check this. A window that leaves half of its
    # blocks for later has them in its checkpoint, so old checkpoints are part of the proof, which `gc` never deletes.
    for part in _inputs(at):
        if part.new_block_hash is None or not at.witness.knows_input(part.dataset_id):
            continue
        block = at.witness.input_block(part.dataset_id, part.new_block_hash)
        if block is None:
            yield fault(
                at,
                "input-block-missing",
                f"input {part.dataset_id} has no block {part.new_block_hash}",
                _REPLAN,
            )
        elif block.offset != part.last_offset:
            yield fault(
                at,
                "input-offset-mismatch",
                f"input {part.dataset_id} is consumed up to offset {part.last_offset}, "
                f"but block {block.seq} ends at {block.offset}",
                "consume whole blocks, and keep the rest of them in the checkpoint",
            )


def an_execution_moves_something(at: Proposal) -> Iterator[Fault]:
    """A window that reads nothing, adds nothing and leaves the same state is not appended."""
    event, standing = at.block.event, at.standing
    if not isinstance(event, ExecuteTransform) or event.new_data or any(i.new_block_hash for i in event.query_inputs):
        return
    moved = changed_checkpoint(event) is not None or event.new_watermark != standing.watermark
    if (event.new_checkpoint or event.new_watermark) and not moved:
        yield fault(at, "transform-unmoved", "ExecuteTransform changes nothing", "append nothing for an idle window")
