"""What a window leaves: which files are whole, and whose state follows whom."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Dag, InputPort, KeyedState, Operator, OutputPort, PortContext, State
from dagkit.compiler import compile_application
from dagkit.engine.files.staging import Part
from dagkit.engine.parts.in_flight import InFlightWindow, Queued
from dagkit.engine.parts.pending import waiting_after
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.program import Program
from dagkit.engine.record.redistribute import redistribute_state
from dagkit.engine.record.whole_files import is_among, settled, with_numbers
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.waiting import Waiting
from dagkit.engine.worker.protocol import WindowTask
from dagkit.errors import RunFailure
from tests.engine.cast import Collect, Digits, Ranges, Script, chain
from tests.engine.items import waiting


def part(file: str, block: int | None = None, *, finished: bool = False) -> Part:
    return Part(operator="writer", file=file, part="staging/1/a/b/0.part", length=1, block=block, finished=finished)


@pytest.mark.parametrize(
    ("parts", "open_blocks", "whole"),
    [
        ([part("a", 1)], set(), "a"),  # a block that was read to its end
        ([part("a", 1)], {1}, ""),
        ([part("a", 1), part("b", 2)], {2}, "a"),
        ([part("a"), part("a")], set(), ""),  # an unfinished file
        ([part("a"), part("a", finished=True)], set(), "aa"),
        ([part("a", 1, finished=True)], {1}, "a"),  # finishing comes before the block
        ([part("a", 1), part("a", 2)], {2}, ""),  # a file of two blocks needs both
        ([], {1}, ""),
    ],
)
def test_which_files_are_whole(parts, open_blocks, whole):
    done, still_open = settled(parts, open_blocks)
    assert "".join(each.file for each in done) == whole
    assert sorted([*done, *still_open], key=parts.index) == list(parts)


def test_what_is_of_no_block_is_whole_with_the_last_window():
    parts = [part("a"), part("b", 1), part("c", 2)]
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
    numbers = InputPort(int, key=lambda number: number)
    output = OutputPort(int)
    counts = KeyedState[int, int](int)
    total = State(0)

    def process(self, number: int) -> None:
        self.counts[number] += 1


class Unkeyed(Tally):
    """Keeps values by a key that items are not routed by."""

    numbers = InputPort(int)


def program(partitions: int, operator: type[Operator] = Tally) -> Program:
    return program_of(compile_application(chain(script=Script(), tally=(operator(), partitions))))


PROGRAMS = {count: program(count) for count in range(1, 6)}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ([{"total": 1}, {"total": 2}], [{"total": 1}, {"total": 2}, {}]),  # new partitions begin empty
        ([{"total": 1}, {}], [{"total": 1}]),  # a partition without state may go
        ([{"gone": 1}], [{}]),  # what the class declares no more is forgotten
    ],
)
def test_other_state_stays_where_it_is(before, now):
    kept: Any = {"tally": tuple(before)}
    assert redistribute_state(PROGRAMS[len(now)], kept)["tally"] == tuple(now)


def test_values_of_partitions_that_own_no_keys_stay_where_they_are():
    def draw(dag: Dag, conf: object) -> None:
        chain(script=Script(), head=(Tally(), 3), tally=Unkeyed())(dag, conf)
        dag.set_input_port_attribute(dag.operator("tally").numbers, PortContext.PARTITION_PARALLEL, True)

    before: Any = ({"counts": [[1, 1, 0]]}, {"counts": [[1, 2, 0]]})
    assert redistribute_state(program_of(compile_application(draw)), {"tally": before})["tally"] == (*before, {})


@pytest.mark.parametrize(
    ("operator", "before"),
    [(Tally, [{"total": 1}, {"total": 2}]), (Unkeyed, [{"counts": [[1, 1, 0]]}, {"counts": [[1, 2, 0]]}])],
)
def test_state_that_no_operator_can_take_over_stops_the_launch(operator, before):
    kept: Any = {"tally": tuple(before)}
    with pytest.raises(RunFailure, match="tally has 1 partitions and had 2"):
        redistribute_state(program(1, operator), kept)


def test_state_of_an_operator_that_is_gone_is_forgotten():
    assert redistribute_state(PROGRAMS[1], {"gone": ({"total": 1},)}) == {}


# ---- two windows in flight

LONG_AGO = datetime(2024, 1, 1, tzinfo=UTC)

IN_FLIGHT = program_of(compile_application(chain(ranges=Ranges(), digits=Digits(), collect=Collect())))
(TARGET,) = (each.address for each in IN_FLIGHT.targets.values() if each.address == "digits.blocks")


@pytest.mark.parametrize("younger", [[(10, 20)], [(10, 14), (14, 20)]], ids=["whole", "in pieces"])
def test_what_the_older_window_left_of_a_block_waits_though_a_younger_one_has_its_number(younger):
    left, given = (waiting(0, *bounds, into=TARGET) for bounds in ((3, 10), (10, 20)))
    allocated = [waiting(0, *bounds, into=TARGET) for bounds in younger]
    window = InFlightWindow(WindowTask(2), LONG_AGO, is_alone=False, queued=Queued([given]))
    window.schedule = WindowSchedule({TARGET: [allocated]}, 1.0, CostEstimate())
    waits = waiting_after([left], Waiting(), [window])
    assert [(each.start, each.end) for each in waits] == [(3, 10)]
