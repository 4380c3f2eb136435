"""The rules of a chain, in the order in which they are checked.

A rule reports every breach and raises nothing. If a block breaks the order of the chain, the other rules are skipped:
they would judge it against the wrong standing.
"""

from collections.abc import Callable, Iterator

from dagkit.ledger.format.events import DataEvent
from dagkit.ledger.format.faults import Fault
from dagkit.ledger.rules import data_rules, declaration_rules, input_rules, order_rules
from dagkit.ledger.rules.proposal import InputBlock, Proposal, Witness

Law = Callable[[Proposal], Iterator[Fault]]

ORDER: tuple[Law, ...] = (
    order_rules.a_seed_stands_first_and_only_there,
    order_rules.a_chain_begins_with_a_seed,
    order_rules.the_previous_block_exists,
    order_rules.numbers_follow_without_gap,
    order_rules.system_time_never_goes_back,
    order_rules.events_stand_in_chains_of_their_kind,
)

DATA: tuple[Law, ...] = (
    input_rules.a_transform_is_declared_before_it_runs,
    input_rules.inputs_are_those_declared,
    input_rules.consumption_begins_where_it_ended,
    input_rules.consumption_moves_or_is_absent,
    input_rules.consumption_runs_forward,
    input_rules.offsets_come_with_their_block,
    input_rules.consumed_blocks_exist_and_end_there,
    input_rules.an_execution_moves_something,
    data_rules.an_event_says_something,
    data_rules.data_follow_a_schema,
    data_rules.intervals_run_forward,
    data_rules.slices_follow_without_gap,
    data_rules.the_last_offset_is_carried,
    data_rules.a_watermark_never_goes_back,
    data_rules.the_checkpoint_is_the_one_left_behind,
    data_rules.a_checkpoint_is_carried,
    data_rules.a_source_state_is_carried,
    data_rules.added_data_move_something,
    data_rules.slices_and_checkpoints_exist,
)

DECLARATIONS: tuple[Law, ...] = (
    declaration_rules.a_transform_has_an_input,
    declaration_rules.inputs_are_declared_once,
    declaration_rules.inputs_are_resolved_and_named,
    declaration_rules.only_the_last_query_has_no_alias,
    declaration_rules.a_schema_changes_when_it_is_set_again,
    declaration_rules.a_schema_grows_compatibly,
)


def judge(at: Proposal) -> list[Fault]:
    """Every breach of every rule; only breaches of the order, if there are any."""
    misplaced = [fault for law in ORDER for fault in law(at)]
    if misplaced:
        return misplaced
    rest = DATA if isinstance(at.block.event, DataEvent) else DECLARATIONS
    return [fault for law in rest for fault in law(at)]


__all__ = ["DATA", "DECLARATIONS", "ORDER", "InputBlock", "Law", "Proposal", "Witness", "judge"]
