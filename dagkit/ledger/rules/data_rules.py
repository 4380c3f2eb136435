"""Rules of AddData and ExecuteTransform: offsets have no gaps, and events carry what the next event needs."""

from collections.abc import Iterator

from dagkit.ledger.format.events import AddData, DataEvent, ExecuteTransform, changed_checkpoint
from dagkit.ledger.format.faults import Fault
from dagkit.ledger.rules.proposal import Proposal, fault


def _data(at: Proposal) -> DataEvent:
    event = at.block.event
    assert isinstance(event, DataEvent), "these rules apply to data blocks only"
    return event


def an_event_says_something(at: Proposal) -> Iterator[Fault]:
    """Idle windows append nothing. Consuming input counts as a change, even without output."""
    event = _data(at)
    if event.new_data or event.new_checkpoint or event.new_watermark:
        return
    if isinstance(event, AddData) and event.new_source_state:
        return
    if isinstance(event, ExecuteTransform) and any(part.new_block_hash for part in event.query_inputs):
        return
    yield fault(at, "event-empty", f"{event.kind} is empty", "append nothing when nothing happened")


def data_follow_a_schema(at: Proposal) -> Iterator[Fault]:
    """Records without a schema cannot be read back."""
    if _data(at).new_data and "SetDataSchema" not in at.standing.keys:
        yield fault(at, "schema-missing", "it adds data, but no schema was set", "append a SetDataSchema first")


def intervals_run_forward(at: Proposal) -> Iterator[Fault]:
    """A slice has at least one record."""
    data = _data(at).new_data
    if data and data.last < data.first:
        yield fault(
            at,
            "interval-reversed",
            f"the slice ends at {data.last}, before it starts at {data.first}",
            "both ends are included: a slice of one record starts and ends at the same offset",
        )


def slices_follow_without_gap(at: Proposal) -> Iterator[Fault]:
    """In every chain, offset n is followed by n + 1."""
    event = _data(at)
    wanted = 0 if event.prev_offset is None else event.prev_offset + 1
    if event.new_data and event.new_data.first != wanted:
        yield fault(
            at,
            "offsets-broken",
            f"the slice starts at {event.new_data.first}, but the next offset is {wanted}",
            f"start it at {wanted}",
        )


def the_last_offset_is_carried(at: Proposal) -> Iterator[Fault]:
    """Resuming relies on `prevOffset`, so it must be correct, also on the first event."""
    event, last = _data(at), at.standing.offset
    if event.prev_offset == last:
        return
    if at.standing.data is None:
        yield fault(
            at,
            "offset-unfounded",
            f"its prevOffset is {event.prev_offset}, but there are no data before it",
            "leave prevOffset out of the first event",
        )
    else:
        yield fault(
            at,
            "offset-mismatch",
            f"it carries the offset {event.prev_offset}, but the last was {last}",
            "plan it from the head of the chain",
        )


def a_watermark_never_goes_back(at: Proposal) -> Iterator[Fault]:
    """Windows that a watermark closed stay closed; once set, it is always carried."""
    watermark, before = _data(at).new_watermark, at.standing.watermark
    if before is not None and (watermark is None or watermark < before):
        problem = "is missing here" if watermark is None else f"goes back to {watermark.isoformat()}"
        yield fault(
            at,
            "watermark-reversed",
            f"the watermark was {before.isoformat()}, but {problem}",
            "carry the last watermark when there is no later one",
        )


def the_checkpoint_is_the_one_left_behind(at: Proposal) -> Iterator[Fault]:
    """An event that started from another state has other results."""
    event, last = _data(at), at.standing.checkpoint
    if event.prev_checkpoint != last:
        yield fault(
            at,
            "checkpoint-mismatch",
            f"it starts from the checkpoint {event.prev_checkpoint}, but the last was {last}",
            "plan it from the head of the chain",
        )


def a_checkpoint_is_carried(at: Proposal) -> Iterator[Fault]:
    """Without its checkpoint, the next window would start from an empty state."""
    if at.standing.checkpoint is not None and _data(at).new_checkpoint is None:
        yield fault(
            at,
            "checkpoint-vanished",
            f"the checkpoint {at.standing.checkpoint} is not carried",
            "carry the last checkpoint unchanged; write an empty one to end the state on purpose",
        )


def a_source_state_is_carried(at: Proposal) -> Iterator[Fault]:
    """Without its state, a source would be read again."""
    event, state = _data(at), at.standing.source_state
    if isinstance(event, AddData) and state is not None and event.new_source_state is None:
        yield fault(
            at,
            "state-vanished",
            f"the state of source {state.source_name!r} is not carried",
            "carry the last source state unchanged",
        )


def added_data_move_something(at: Proposal) -> Iterator[Fault]:
    """An AddData that changes nothing would only make the chain longer."""
    event, standing = _data(at), at.standing
    if not isinstance(event, AddData) or event.new_data:
        return
    moved = (
        changed_checkpoint(event) is not None
        or event.new_watermark != standing.watermark
        or event.new_source_state != standing.source_state
    )
    says = event.new_checkpoint or event.new_watermark or event.new_source_state
    if says and not moved:
        yield fault(at, "data-unmoved", "AddData changes nothing", "append nothing when nothing happened")


def slices_and_checkpoints_exist(at: Proposal) -> Iterator[Fault]:
    """Contents are stored before the block that names them, so that a crash leaves orphans and never missing data."""
    event = _data(at)
    if event.new_data and not at.witness.has_data(event.new_data.physical_hash):
        yield fault(
            at,
            "data-missing",
            f"its slice {event.new_data.physical_hash} is not in the ledger",
            "store the slice before its block, or pass it to append",
        )
    checkpoint = event.new_checkpoint
    carried = checkpoint is not None and checkpoint.physical_hash == at.standing.checkpoint
    if checkpoint and not carried and not at.witness.has_checkpoint(checkpoint.physical_hash):
        yield fault(
            at,
            "checkpoint-missing",
            f"its checkpoint {checkpoint.physical_hash} is not in the ledger",
            "store the checkpoint before its block, or pass it to append",
        )
