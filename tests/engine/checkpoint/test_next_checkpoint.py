"""What a window leaves: which files are whole, and whose state follows whom."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import (
    Dag,
    InputPort,
    KeyedState,
    Operator,
    OperatorContext,
    OutputPort,
    PortContext,
    State,
    StatelessPartitioner,
)
from dagkit.api.keyed import saved_keys
from dagkit.compiler import compile_application
from dagkit.engine.checkpoint.next_checkpoint import is_among, settled, with_numbers
from dagkit.engine.checkpoint.redistribute import StateStranded, redistribute_state
from dagkit.engine.files.staging import Part
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.program import Program
from tests.engine.cast import Script


def part(file: str, *, block: int | None = None, finished: bool = False) -> Part:
    return Part(operator="writer", file=file, part="staging/1/a/b/0.part", length=1, block=block, finished=finished)


@pytest.mark.parametrize(
    ("parts", "open_blocks", "whole"),
    [
        pytest.param([part("a", block=1)], set(), "a", id="a block that was read to its end"),
        pytest.param([part("a", block=1)], {1}, "", id="a block that is not read to its end"),
        pytest.param([part("a", block=1), part("b", block=2)], {2}, "a", id="one of two blocks"),
        pytest.param([part("a"), part("a")], set(), "", id="an unfinished file"),
        pytest.param([part("a"), part("a", finished=True)], set(), "aa", id="a finished file"),
        pytest.param([part("a", block=1, finished=True)], {1}, "a", id="finishing comes before the block"),
        pytest.param([part("a", block=1), part("a", block=2)], {2}, "", id="a file of two blocks needs both"),
        pytest.param([], {1}, "", id="nothing was written"),
    ],
)
def test_which_files_are_whole(parts, open_blocks, whole):
    done, still_open = settled(parts, open_blocks)
    assert "".join(each.file for each in done) == whole
    assert sorted([*done, *still_open], key=parts.index) == list(parts)


def test_what_is_of_no_block_is_whole_with_the_last_window():
    parts = [part("a"), part("b", block=1), part("c", block=2)]
    done, still_open = settled(parts, {1}, last=True)
    assert ([each.file for each in done], [each.file for each in still_open]) == (["a", "c"], ["b"])


@given(st.lists(st.sets(st.integers(0, 40)), max_size=5), st.integers(0, 40))
def test_numbers_are_kept_as_stretches(numbers, asked):
    stretches: tuple[tuple[int, int], ...] = ()
    for some in numbers:
        stretches = with_numbers(stretches, some)
    known = set().union(*numbers)
    assert {number for start, end in stretches for number in range(start, end)} == known
    assert is_among(asked, stretches) == (asked in known)
    assert all(first[1] < second[0] for first, second in pairwise(stretches))


# ---- state and partitions


class Tally(Operator):
    kind = "cast.tally-and-total/1"
    numbers = InputPort(int, key=lambda number: number)
    output = OutputPort(int)
    counts = KeyedState[int, int](int)
    total = State(0)

    def process(self, number: int) -> None:
        self.counts[number] += 1


class Unkeyed(Operator):
    """Keeps values by a key that items are not routed by."""

    kind = "cast.unkeyed/1"
    numbers = InputPort(int)
    counts = KeyedState[int, int](int)

    def process(self, number: int) -> None:
        self.counts[number] += 1


def program(partitions: int, operator: type[Operator] = Tally) -> Program:
    def draw(dag: Dag, conf: object) -> None:
        tally: Any = dag.add_operator("tally", operator())
        dag.set_operator_attribute(tally, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        dag.add_operator("script", Script()) >> tally

    return program_of(compile_application(draw))


PROGRAMS = {count: program(count) for count in range(1, 6)}


def keyed(program: Program, counts: Mapping[int, int]) -> dict[str, tuple[dict[str, Any], ...]]:
    """The state that partitions had which counted these."""
    target = next(iter(program.targets.values()))
    slots: list[dict[str, Any]] = [{} for _ in range(target.slots)]
    for key, value in counts.items():
        code = target.keying.code(key)
        slot = next((slot for slot, keys in enumerate(target.keys) if keys.owns(code)), 0)
        slots[slot].setdefault("counts", []).append([key, value, code])
    return {"tally": tuple(slots)}


@given(st.dictionaries(st.integers(), st.integers(1, 9)), st.integers(1, 5), st.integers(1, 5))
def test_keyed_values_lie_where_their_keys_do(counts, before, now):
    found = redistribute_state(PROGRAMS[now], keyed(PROGRAMS[before], counts))
    expected = keyed(PROGRAMS[now], counts)
    as_sets = [
        [saved_keys(slot.get("counts", [])) for slot in states.get("tally", [{}] * now)] for states in (found, expected)
    ]
    assert as_sets[0] == as_sets[1]


def test_a_partition_whose_keys_are_all_another_s_now_keeps_none_of_their_values():
    """The count is the same, and keys are not: a partitioner distributes them in another way."""
    (first, second), none = keyed(PROGRAMS[2], dict.fromkeys(range(20), 1))["tally"], saved_keys([])
    found = redistribute_state(PROGRAMS[2], {"tally": (second, first)})["tally"]
    assert [saved_keys(slot["counts"]) for slot in found] == [saved_keys(slot["counts"]) for slot in (first, second)]
    found = redistribute_state(PROGRAMS[2], {"tally": (second, {})})["tally"]
    assert [saved_keys(slot.get("counts", [])) for slot in found] == [none, saved_keys(second["counts"])]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param([{"total": 1}, {"total": 2}], [{"total": 1}, {"total": 2}, {}], id="new partitions begin empty"),
        pytest.param([{"total": 1}, {}], [{"total": 1}], id="a partition without state may go"),
        pytest.param([{"gone": 1}], [{}], id="what the class declares no more is forgotten"),
    ],
)
def test_other_state_stays_where_it_is(before, now):
    kept: Any = {"tally": tuple(before)}
    assert redistribute_state(PROGRAMS[len(now)], kept)["tally"] == tuple(now)


def test_values_of_partitions_that_own_no_keys_stay_where_they_are():
    def draw(dag: Dag, conf: object) -> None:
        head, tally = dag.add_operator("head", Tally()), dag.add_operator("tally", Unkeyed())
        dag.set_operator_attribute(head, OperatorContext.PARTITIONER, StatelessPartitioner(3))
        dag.set_input_port_attribute(tally.numbers, PortContext.PARTITION_PARALLEL, True)
        dag.add_operator("script", Script()) >> head
        dag.add_stream("numbers", head.output, tally.numbers)

    before: Any = ({"counts": [[1, 1, 0]]}, {"counts": [[1, 2, 0]]})
    assert redistribute_state(program_of(compile_application(draw)), {"tally": before})["tally"] == (*before, {})


@pytest.mark.parametrize(
    ("operator", "before"),
    [
        pytest.param(Tally, [{"total": 1}, {"total": 2}], id="a total"),
        pytest.param(Unkeyed, [{"counts": [[1, 1, 0]]}, {"counts": [[1, 2, 0]]}], id="one key in two partitions"),
    ],
)
def test_state_that_no_operator_can_take_over_stops_the_launch(operator, before):
    kept: Any = {"tally": tuple(before)}
    with pytest.raises(StateStranded, match="tally has 1 partitions and had 2"):
        redistribute_state(program(1, operator), kept)


def test_state_of_an_operator_that_is_gone_is_forgotten():
    assert redistribute_state(PROGRAMS[1], {"gone": ({"total": 1},)}) == {}
