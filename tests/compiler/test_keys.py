"""Partitions that own no keys, own the same ones, or leave some out are reported: items would be doubled or lost."""

import pytest

from dagkit import InputPort, KeyedState, Operator, OperatorContext, Partition, Partitioner, PartitionKeys, PortContext
from dagkit.api.partitioning import assign_keys
from dagkit.errors import Severity
from tests.cases import cases
from tests.compiler.cast import Deal, Parity, told
from tests.compiler.sketches import sketch


class Plain(Operator):
    """Nothing says how items find their partition."""

    items = InputPort(int)

    def process(self, item: int) -> None: ...


class ByKey(Plain):
    items = InputPort(int, key=lambda item: item % 2)


class Counting(Plain):
    counts = KeyedState[int, int](int)


class Keys(Partitioner):
    """Gives each partition these keys of the first input."""

    def __init__(self, *keys):
        self.keys = keys

    def define_partitions(self, partitions, context):
        port = context.input_ports[0]
        return [Partition(partitions[0].operator, {port: k} if k is not None else {}) for k in self.keys]


def _owns(mask, *keys):
    return PartitionKeys(mask, frozenset(keys))


def _told(operator, partitioner, *, by_driver=False, codec=None):
    dag = sketch("s>count" if by_driver else "s>step step>count", count=operator)
    dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, partitioner)
    if codec is not None:
        dag.set_input_port_attribute(operator.items, PortContext.STREAM_CODEC, codec)
    return told(dag)


WARNING, ERROR = Severity.WARNING, Severity.ERROR
NO_KEYS = "no partition of count owns keys of count.items, so each item reaches"
ANY = "any partition may get any item, whatever its STREAM_CODEC"


@cases(
    "operator, by_driver, codec, severity, said",
    ("plain", Plain(), False, None, WARNING, NO_KEYS),
    ("a codec", Plain(), False, Parity(), ERROR, "whatever its STREAM_CODEC says"),
    ("a codec, distributed", Plain(), True, Parity(), ERROR, ANY),
    ("a key", ByKey(), False, None, ERROR, "reaches all 3 of them, whatever its key= says"),
    ("a key, distributed", ByKey(), True, None, ERROR, "whatever its key= says"),
    ("keyed state", Counting(), False, None, ERROR, "whatever its KeyedState 'counts' says"),
    ("keyed state, distributed", Counting(), True, None, ERROR, "whatever its KeyedState 'counts' says"),
)
def test_partitions_without_keys_are_reported(operator, by_driver, codec, severity, said):
    (fault,) = _told(operator, Deal(3), by_driver=by_driver, codec=codec)
    assert (fault.code, fault.severity) == ("partition-unkeyed", severity)
    assert said in fault.problem
    assert "assign_keys(count)" in fault.help
    assert fault.where


def test_what_the_driver_distributes_needs_no_keys():
    assert _told(Plain(), Deal(3), by_driver=True) == []


@pytest.mark.parametrize("keys", [*map(assign_keys, (1, 2, 3, 5)), [_owns(1, 0), _owns(3, 1), _owns(3, 3)]])
def test_keys_are_right_that_are_assigned_or_share_everything_out_under_unequal_masks(keys):
    assert _told(ByKey(), Keys(*keys)) == []


@cases(
    "keys, said",
    ("one is left out", [_owns(3, 0), _owns(3, 1), _owns(3, 2)], "some keys have no owner, and their items would be"),
    ("a key outside its mask", [_owns(1, 0), _owns(1, 3)], "some keys have no owner"),
    ("one has two owners", [_owns(1, 0), _owns(1, 0, 1)], "two partitions own the same key, and its items would be"),
    ("under unequal masks", [_owns(1, 0), _owns(1, 1), _owns(3, 3)], "two partitions own the same"),
    ("none", [_owns(0, 0), None], "1 of 2 partitions have none of them"),
    ("no mask", [_owns(-1, 0)], "a mask is negative"),
)
def test_keys_that_lose_or_double_items_are_reported(keys, said):
    (fault,) = _told(ByKey(), Keys(*keys))
    assert fault.code == "partition-invalid"
    assert f"the Keys of count keys 'items' so that {said}" in fault.problem
    assert "assign_keys(count)" in fault.help
