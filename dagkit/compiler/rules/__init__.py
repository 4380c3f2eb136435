"""The rules for graphs, in the order in which they run. Each reports every breach of one law and raises nothing."""

from collections.abc import Callable, Iterator

from dagkit.compiler.alike import merge_alike
from dagkit.compiler.rules.affinity_rules import (
    affinity_agrees_with_the_streams,
    affinity_names_operators_that_exist,
    hosts_agree_with_affinity,
    one_thread_serves_one_source,
    thread_affinity_joins_connected_operators,
)
from dagkit.compiler.rules.attribute_rules import (
    attributes_off_the_platform_are_reported,
    port_attributes_are_set_on_connected_ports,
    settings_can_be_pickled,
    settings_hold_values_of_their_kind,
)
from dagkit.compiler.rules.file_rules import (
    files_that_are_followed_are_sent_once,
    no_operator_finds_what_another_writes,
    no_two_operators_write_one_file,
)
from dagkit.compiler.rules.graph_rules import (
    an_application_has_operators,
    every_delay_leads_back,
    every_loop_holds_a_delay,
    every_operator_is_reached,
    every_root_is_an_input_operator,
    every_stream_has_a_sink,
    every_stream_has_a_source,
    input_operators_are_fed_by_nothing,
    sent_items_can_be_read,
    sent_items_suit_the_properties,
)
from dagkit.compiler.rules.handler_rules import (
    every_connected_input_has_a_handler,
    every_handler_takes_one_item,
    every_input_operator_emits,
    inputs_are_distinguished,
    methods_have_the_names_that_the_engine_calls,
    work_on_plain_values_is_defined,
    yielded_items_have_an_output,
)
from dagkit.compiler.rules.partition_rules import (
    an_unpartitionable_operator_has_no_partitioner,
    an_unpartitionable_operator_mirrors_no_partitions,
    parallel_inputs_come_from_one_group,
    parallel_inputs_keep_their_partition,
)
from dagkit.compiler.rules.port_rules import (
    connected_ports_are_not_hidden,
    every_port_is_on_one_stream,
    every_required_input_is_fed,
    every_required_output_is_read,
    every_restriction_can_be_written,
    every_restriction_has_a_tracker,
    ports_that_need_a_schema_have_one,
)
from dagkit.compiler.rules.property_rules import (
    every_state_can_be_written,
    kinds_name_one_class,
    properties_hold,
    waived_guarantees_are_reported,
)
from dagkit.compiler.rules.window_rules import (
    application_windows_are_kept_whole,
    checkpoints_fall_between_application_windows,
    every_watermark_has_a_source,
    items_that_meet_in_a_window_arrive_in_one,
    processing_modes_agree,
)
from dagkit.errors import Diagnostic
from dagkit.graph import Graph

Rule = Callable[[Graph], Iterator[Diagnostic]]

RULES: tuple[Rule, ...] = (
    an_application_has_operators,
    properties_hold,
    kinds_name_one_class,
    every_stream_has_a_source,
    every_stream_has_a_sink,
    every_port_is_on_one_stream,
    connected_ports_are_not_hidden,
    every_required_input_is_fed,
    every_required_output_is_read,
    every_connected_input_has_a_handler,
    every_handler_takes_one_item,
    every_input_operator_emits,
    methods_have_the_names_that_the_engine_calls,
    work_on_plain_values_is_defined,
    every_restriction_can_be_written,
    every_restriction_has_a_tracker,
    every_state_can_be_written,
    inputs_are_distinguished,
    yielded_items_have_an_output,
    sent_items_can_be_read,
    sent_items_suit_the_properties,
    ports_that_need_a_schema_have_one,
    every_root_is_an_input_operator,
    input_operators_are_fed_by_nothing,
    every_operator_is_reached,
    every_loop_holds_a_delay,
    every_delay_leads_back,
    settings_hold_values_of_their_kind,
    settings_can_be_pickled,
    port_attributes_are_set_on_connected_ports,
    an_unpartitionable_operator_mirrors_no_partitions,
    an_unpartitionable_operator_has_no_partitioner,
    parallel_inputs_come_from_one_group,
    parallel_inputs_keep_their_partition,
    application_windows_are_kept_whole,
    checkpoints_fall_between_application_windows,
    processing_modes_agree,
    items_that_meet_in_a_window_arrive_in_one,
    every_watermark_has_a_source,
    one_thread_serves_one_source,
    affinity_names_operators_that_exist,
    affinity_agrees_with_the_streams,
    hosts_agree_with_affinity,
    thread_affinity_joins_connected_operators,
    no_operator_finds_what_another_writes,
    no_two_operators_write_one_file,
    files_that_are_followed_are_sent_once,
    attributes_off_the_platform_are_reported,
    waived_guarantees_are_reported,
)


def check(graph: Graph) -> list[Diagnostic]:
    """Every breach of every law. A breach inside a module is reported once for all uses of the module."""
    return merge_alike((breach for rule in RULES for breach in rule(graph)), graph)
