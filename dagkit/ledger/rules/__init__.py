"""The laws of a chain, in the order in which they are asked.

A law reports every breach and raises nothing. A block that breaks the order of the chain is judged no further: what
else would be said of it would be said of the wrong place.
"""

from collections.abc import Callable, Iterator

from dagkit.ledger.events import AddData, ExecuteTransform
from dagkit.ledger.faults import Fault
from dagkit.ledger.rules import data, declarations, inputs, order
from dagkit.ledger.rules.proposal import InputBlock, Proposal, Witness

Law = Callable[[Proposal], Iterator[Fault]]

ORDER: tuple[Law, ...] = (
    order.a_seed_stands_first_and_only_there,
    order.a_chain_begins_with_a_seed,
    order.the_previous_block_exists,
    order.numbers_follow_without_gap,
    order.system_time_never_goes_back,
    order.events_stand_in_chains_of_their_kind,
)

DATA: tuple[Law, ...] = (
    inputs.a_transform_is_declared_before_it_runs,
    inputs.inputs_are_those_declared,
    inputs.consumption_begins_where_it_ended,
    inputs.consumption_moves_or_is_absent,
    inputs.consumption_runs_forward,
    inputs.offsets_come_with_their_block,
    inputs.consumed_blocks_exist_and_end_there,
    inputs.an_execution_moves_something,
    data.an_event_says_something,
    data.data_follow_a_schema,
    data.intervals_run_forward,
    data.slices_follow_without_gap,
    data.the_last_offset_is_carried,
    data.a_watermark_never_goes_back,
    data.the_checkpoint_is_the_one_left_behind,
    data.a_checkpoint_is_carried,
    data.a_source_state_is_carried,
    data.added_data_move_something,
    data.slices_and_checkpoints_exist,
)

DECLARATIONS: tuple[Law, ...] = (
    declarations.a_transform_has_an_input,
    declarations.inputs_are_declared_once,
    declarations.inputs_are_resolved_and_named,
    declarations.queries_are_in_list_form,
    declarations.a_source_is_added_once,
    declarations.a_chain_polls_or_is_pushed_to,
    declarations.only_a_known_source_is_disabled,
    declarations.a_source_describes_its_columns_once,
    declarations.a_chain_of_blocks_is_found_by_id_or_address,
    declarations.a_schema_is_described,
    declarations.a_schema_changes_when_it_is_set_again,
    declarations.a_schema_grows_compatibly,
    declarations.system_columns_are_described,
)


def judge(at: Proposal) -> list[Fault]:
    """Every breach of every law, warnings included."""
    misplaced = [fault for law in ORDER for fault in law(at)]
    if misplaced:
        return misplaced
    rest = DATA if isinstance(at.block.event, AddData | ExecuteTransform) else DECLARATIONS
    return [fault for law in rest for fault in law(at)]


__all__ = ["DATA", "DECLARATIONS", "ORDER", "InputBlock", "Law", "Proposal", "Witness", "judge"]
