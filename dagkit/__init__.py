"""dagkit: streaming applications as checked graphs of typed operators, compiled to fused PySpark stages.

This module exports the names that authors of applications use. Other packages compile, draw and run applications. A
name's module is imported on first use, so that `dagkit --help` and pytest's plugins start without all of them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dagkit.deferred_names import deferred

if TYPE_CHECKING:
    from dagkit.api.affinity import AffinityRule, AffinityRulesSet, AffinityType
    from dagkit.api.application import Module, StreamingApplication
    from dagkit.api.attributes import DagContext, Locality, OperatorContext, PortContext, ProcessingMode
    from dagkit.api.configuration import Config
    from dagkit.api.controls import Control, Delivery
    from dagkit.api.dag import Dag
    from dagkit.api.external import Entries, ExternalOutput, ExternalSystem, StagedWindow, Unavailable
    from dagkit.api.files import Files, OutputFile, OutputFiles
    from dagkit.api.metrics import MetricsAggregator, auto_metric, avg
    from dagkit.api.operators import DelayOperator, InputOperator, Operator, RowOperator, Rows, Unifier
    from dagkit.api.outage import Outage
    from dagkit.api.partitioning import (
        Partition,
        Partitioner,
        PartitioningContext,
        PartitionKeys,
        StatelessPartitioner,
        assign_keys,
    )
    from dagkit.api.ports import Inlet, InputPort, Outlet, OutputPort
    from dagkit.api.running import Context, Shutdown, Until
    from dagkit.api.state import KeyedState, State
    from dagkit.api.stats import (
        Backlog,
        BatchedOperatorStats,
        Capacity,
        DataQueueSize,
        OperatorStats,
        PortStats,
        Response,
        StatsListener,
    )
    from dagkit.api.streams import StreamCodec
    from dagkit.api.work import Block, Sourced, SplittableOperator
    from dagkit.errors import ApplicationFaults, DagkitError, Diagnostic
    from dagkit.schema.batch import Batch
    from dagkit.schema.columns import Arrowed, Column, Constant, Lines, Listed

__all__ = [
    "AffinityRule",
    "AffinityRulesSet",
    "AffinityType",
    "ApplicationFaults",
    "Arrowed",
    "Backlog",
    "Batch",
    "BatchedOperatorStats",
    "Block",
    "Capacity",
    "Column",
    "Config",
    "Constant",
    "Context",
    "Control",
    "Dag",
    "DagContext",
    "DagkitError",
    "DataQueueSize",
    "DelayOperator",
    "Delivery",
    "Diagnostic",
    "Entries",
    "ExternalOutput",
    "ExternalSystem",
    "Files",
    "Inlet",
    "InputOperator",
    "InputPort",
    "KeyedState",
    "Lines",
    "Listed",
    "Locality",
    "MetricsAggregator",
    "Module",
    "Operator",
    "OperatorContext",
    "OperatorStats",
    "Outage",
    "Outlet",
    "OutputFile",
    "OutputFiles",
    "OutputPort",
    "Partition",
    "PartitionKeys",
    "Partitioner",
    "PartitioningContext",
    "PortContext",
    "PortStats",
    "ProcessingMode",
    "Response",
    "RowOperator",
    "Rows",
    "Shutdown",
    "Sourced",
    "SplittableOperator",
    "StagedWindow",
    "State",
    "StatelessPartitioner",
    "StatsListener",
    "StreamCodec",
    "StreamingApplication",
    "Unavailable",
    "Unifier",
    "Until",
    "assign_keys",
    "auto_metric",
    "avg",
]

_HOMES: Mapping[str, str] = {
    "AffinityRule": "api.affinity",
    "AffinityRulesSet": "api.affinity",
    "AffinityType": "api.affinity",
    "ApplicationFaults": "errors",
    "Arrowed": "schema.columns",
    "Backlog": "api.stats",
    "Batch": "schema.batch",
    "BatchedOperatorStats": "api.stats",
    "Block": "api.work",
    "Capacity": "api.stats",
    "Column": "schema.columns",
    "Config": "api.configuration",
    "Constant": "schema.columns",
    "Context": "api.running",
    "Control": "api.controls",
    "Dag": "api.dag",
    "DagContext": "api.attributes",
    "DagkitError": "errors",
    "DataQueueSize": "api.stats",
    "DelayOperator": "api.operators",
    "Delivery": "api.controls",
    "Diagnostic": "errors",
    "Entries": "api.external",
    "ExternalOutput": "api.external",
    "ExternalSystem": "api.external",
    "Files": "api.files",
    "Inlet": "api.ports",
    "InputOperator": "api.operators",
    "InputPort": "api.ports",
    "KeyedState": "api.state",
    "Lines": "schema.columns",
    "Listed": "schema.columns",
    "Locality": "api.attributes",
    "MetricsAggregator": "api.metrics",
    "Module": "api.application",
    "Operator": "api.operators",
    "OperatorContext": "api.attributes",
    "OperatorStats": "api.stats",
    "Outage": "api.outage",
    "Outlet": "api.ports",
    "OutputFile": "api.files",
    "OutputFiles": "api.files",
    "OutputPort": "api.ports",
    "Partition": "api.partitioning",
    "PartitionKeys": "api.partitioning",
    "Partitioner": "api.partitioning",
    "PartitioningContext": "api.partitioning",
    "PortContext": "api.attributes",
    "PortStats": "api.stats",
    "ProcessingMode": "api.attributes",
    "Response": "api.stats",
    "RowOperator": "api.operators",
    "Rows": "api.operators",
    "Shutdown": "api.running",
    "Sourced": "api.work",
    "SplittableOperator": "api.work",
    "StagedWindow": "api.external",
    "State": "api.state",
    "StatelessPartitioner": "api.partitioning",
    "StatsListener": "api.stats",
    "StreamCodec": "api.streams",
    "StreamingApplication": "api.application",
    "Unavailable": "api.external",
    "Unifier": "api.operators",
    "Until": "api.running",
    "assign_keys": "api.partitioning",
    "auto_metric": "api.metrics",
    "avg": "api.metrics",
}
"""The module of each name."""

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    found = globals()[name] = deferred(__name__, _HOMES, name)
    _draw_in_notebooks()
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def _draw_in_notebooks() -> None:
    """Let a Dag draw itself: its own layer cannot import what draws, and importing dagkit must not load that."""
    from dagkit.api.dag import Dag  # noqa: PLC0415 - with the first name, which needs it, too

    def drawn(dag: Dag) -> Mapping[str, str]:
        from dagkit.render.formats import mimebundle  # noqa: PLC0415 - as above

        return mimebundle(dag)

    Dag.drawing = staticmethod(drawn)
