"""dagkit: streaming applications as checked graphs of typed operators, compiled to fused PySpark stages.

This module exports the names that authors of applications use. Other packages compile, draw and run applications.
"""

from collections.abc import Mapping

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

__version__ = "0.1.0"


def _drawn_for_notebooks(dag: Dag) -> Mapping[str, str]:
    from dagkit.render.notebook import mimebundle  # noqa: PLC0415 - importing dagkit must not load what draws

    return mimebundle(dag)


Dag.drawing = staticmethod(_drawn_for_notebooks)
