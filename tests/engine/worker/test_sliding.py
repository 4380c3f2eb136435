"""Sliding windows against numbers counted by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Dag, InputPort, Operator, OperatorContext, OutputPort, State, Unifier
from dagkit.engine.program.points import Point
from dagkit.engine.program.program import Sliding
from dagkit.engine.worker.sliding import Panes, together
from dagkit.testing.crashes import CrashAfter
from tests.engine.cast import Collect, Desk, Draw, Script, arrived, chain


def slid(length: int, step: int, items: list[list[int]]) -> list[list[int]]:
    """What goes out in each window, where the panes are saved and restored in between."""
    sliding, kept, out = Sliding(length, step, "sum.output", int), {}, []
    for window_id, mine in enumerate(items, 1):
        panes = Panes(sliding, kept)
        for item in mine:
            panes.add(item)
        out.append(panes.turn(window_id))
        kept = panes.saved()
    return out


@pytest.mark.parametrize(
    ("length", "step", "out"),
    [
        (1, 1, [[1], [2], [3], [4], [5], [6]]),
        (2, 1, [[1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6]]),
        (3, 2, [[], [1, 2], [], [2, 3, 4], [], [4, 5, 6]]),
        (4, 2, [[], [1, 2], [], [1, 2, 3, 4], [], [3, 4, 5, 6]]),
    ],
)
def test_what_slides(length, step, out):
    assert slid(length, step, [[number] for number in range(1, 7)]) == out


@given(st.integers(1, 6), st.integers(1, 6), st.lists(st.lists(st.integers(), max_size=3), max_size=14))
def test_a_window_holds_what_its_last_windows_brought(length, step, items):
    for window_id, out in enumerate(slid(length, step, items), 1):
        within = items[max(0, window_id - length) : window_id] if window_id % step == 0 else []
        assert out == [item for mine in within for item in mine]


def test_panes_of_several_partitions_are_put_together_by_age():
    assert together([{"panes": [[1], [2]]}, {"panes": [[3]]}, {}]) == {"panes": [[1], [2, 3]]}


class Add(Unifier[int]):
    total = State(0)

    def process(self, item: int) -> None:
        self.total += item

    def end_window(self) -> None:
        self.unified.emit(self.total)


class Sum(Operator):
    input = InputPort[int](key=lambda number: number)
    output = OutputPort[int](unifier=Add)
    total = State(0)

    def process(self, number: int) -> None:
        self.total += number

    def end_window(self) -> None:
        if self.total:
            self.output.emit(self.total)
        self.total = 0


def summing(length: int, step: int | None, partitions: int) -> Draw:
    """Two numbers in each of six windows: 1 and 10, 2 and 20, up to 6 and 60."""

    def draw(dag: Dag, conf: object) -> None:
        script = Script(looks=tuple((n, 10 * n) for n in range(1, 7)))
        chain(script=script, sum=(Sum(), partitions), collect=Collect())(dag, conf)
        total = dag.operator("sum")
        dag.set_operator_attribute(total, OperatorContext.APPLICATION_WINDOW_COUNT, length)
        if step is not None:
            dag.set_operator_attribute(total, OperatorContext.SLIDE_BY_WINDOW_COUNT, step)

    return draw


@pytest.mark.parametrize("is_restarted", [False, True], ids=["undisturbed", "restarted at every window"])
@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize(
    ("length", "step", "sums"), [(2, 1, [11, 33, 55, 77, 99, 121]), (3, 2, [33, 99, 165]), (4, 2, [33, 110, 198])]
)
def test_sums_slide_as_counted_by_hand(*, tmp_path, length, step, sums, partitions, is_restarted):
    desk = Desk(tmp_path, summing(length, step, partitions))
    for window in range(1, 7) if is_restarted else ():
        desk.crash(CrashAfter(Point.STAGED, window))
        desk.run(windows=1)
    assert (arrived(desk.run()), desk.faults()) == (sums, [])


def test_an_application_window_that_is_open_at_the_end_is_closed(tmp_path):
    loop = Desk(tmp_path, summing(4, None, 1)).run()
    assert (arrived(loop), loop.checkpoint.window) == ([110, 121], 8)


@pytest.mark.parametrize(("before", "now"), [(1, 2), (2, 1), (2, 3), (3, 2)])
def test_panes_follow_another_number_of_partitions(tmp_path, before, now):
    Desk(tmp_path, summing(2, 1, before)).run(windows=3)
    assert arrived(Desk(tmp_path, summing(2, 1, now)).run()) == [11, 33, 55, 77, 99, 121]
