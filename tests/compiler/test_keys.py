"""Partitions that own no keys, own the same ones, or leave some out are reported: items would be doubled or lost."""

from collections.abc import Sequence
from typing import Any

import pytest

from dagkit import (
    Dag,
    InputPort,
    KeyedState,
    Operator,
    OperatorContext,
    Partition,
    Partitioner,
    PartitioningContext,
    PartitionKeys,
    PortContext,
    assign_keys,
)
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults, Diagnostic, Severity
from tests.cases import cases
from tests.compiler.cast import Deal, Parity, Source, Step


class Plain(Operator):
    """Nothing says how items find their partition."""

    items = InputPort(int)

    def process(self, item: int) -> None: ...


class ByKey(Plain):
    """Its input is keyed."""

    items = InputPort(int, key=lambda item: item % 2)


class Counting(Plain):
    """It keeps state by key."""

    counts = KeyedState[int, int](int)


class Keys(Partitioner):
    """Gives each partition these keys of the first input."""

    def __init__(self, *keys: PartitionKeys | None) -> None:
        self.keys = keys

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        port = context.input_ports[0]
        return [Partition(partitions[0].operator, {port: k} if k is not None else {}) for k in self.keys]


def _owns(mask: int, *keys: int) -> PartitionKeys:
    return PartitionKeys(mask, frozenset(keys))


def _told(operator: Any, partitioner: Partitioner, *, by_driver: bool = False, codec: Any = None) -> list[Diagnostic]:
    dag = Dag()
    out = dag.add_operator("source", Source()).out
    if not by_driver:
        step = dag.add_operator("step", Step())
        dag.add_stream("distributed", out, step.one)
        out = step.out
    dag.add_operator("count", operator)
    dag.add_stream("items", out, operator.items)
    dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, partitioner)
    if codec is not None:
        dag.set_input_port_attribute(operator.items, PortContext.STREAM_CODEC, codec)
    try:
        return list(compile_application(dag).notes)
    except ApplicationFaults as faults:
        return list(faults.diagnostics)


@cases(
    "operator, by_driver, codec, severity, said",
    (
        "plain",
        Plain(),
        False,
        None,
        Severity.WARNING,
        "no partition of count owns keys of count.items, so each item reaches",
    ),
    ("a codec", Plain(), False, Parity(), Severity.ERROR, "whatever its STREAM_CODEC says"),
    (
        "a codec, distributed",
        Plain(),
        True,
        Parity(),
        Severity.ERROR,
        "any partition may get any item, whatever its STREAM_CODEC",
    ),
    ("a key", ByKey(), False, None, Severity.ERROR, "reaches all 3 of them, whatever its key= says"),
    ("a key, distributed", ByKey(), True, None, Severity.ERROR, "whatever its key= says"),
    ("keyed state", Counting(), False, None, Severity.ERROR, "whatever its KeyedState 'counts' says"),
    ("keyed state, distributed", Counting(), True, None, Severity.ERROR, "whatever its KeyedState 'counts' says"),
)
def test_partitions_without_keys_are_reported(operator, by_driver, codec, severity, said):
    (told,) = _told(operator, Deal(3), by_driver=by_driver, codec=codec)
    assert (told.code, told.severity) == ("partition-unkeyed", severity)
    assert said in told.problem
    assert "assign_keys(count)" in told.help
    assert told.where is not None


def test_what_the_driver_distributes_needs_no_keys():
    assert _told(Plain(), Deal(3), by_driver=True) == []


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_assigned_keys_are_right(count):
    assert _told(ByKey(), Keys(*assign_keys(count))) == []


def test_keys_under_unequal_masks_may_share_everything_out():
    assert _told(ByKey(), Keys(_owns(1, 0), _owns(3, 1), _owns(3, 3))) == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([_owns(3, 0), _owns(3, 1), _owns(3, 2)], "some keys have no owner, and their items would be lost"),
        ([_owns(1, 0), _owns(1, 3)], "some keys have no owner"),
        ([_owns(1, 0), _owns(1, 0, 1)], "two partitions own the same key, and its items would be doubled"),
        ([_owns(1, 0), _owns(1, 1), _owns(3, 3)], "two partitions own the same"),
        ([_owns(0, 0), None], "1 of 2 partitions have none of them"),
        ([_owns(-1, 0)], "a mask is negative"),
    ],
    ids=["one is left out", "a key outside its mask", "one has two owners", "under unequal masks", "none", "no mask"],
)
def test_keys_that_lose_or_double_items_are_reported(keys, said):
    (told,) = _told(ByKey(), Keys(*keys))
    assert told.code == "partition-invalid"
    assert f"the Keys of count keys 'items' so that {said}" in told.problem
    assert "assign_keys(count)" in told.help
