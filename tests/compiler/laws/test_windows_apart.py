"""An operator that joins items of a few windows is reported if its inputs need not arrive together."""

import pytest

from dagkit import Dag, InputPort, Operator
from tests.compiler.cast import Source, Step, compiled


class Meet(Operator):
    """Brings together items of a few windows."""

    left = InputPort(int)
    right = InputPort(int)
    windows: int | None = 1

    def windows_joined(self) -> int | None:
        return self.windows

    @left.process
    @right.process
    def process(self, item: int) -> None: ...


def meeting(left: str, right: str, windows: int | None) -> list[str]:
    """The warnings for an operator that two outputs feed. Sources feed s1>a>b and s2>d."""
    dag = Dag()
    s1, s2 = dag.add_operator("s1", Source()), dag.add_operator("s2", Source())
    a, b, d = (dag.add_operator(name, Step()) for name in "abd")
    dag.add_stream("s1>a", s1.out, a.one)
    dag.add_stream("a>b", a.more, b.one)
    dag.add_stream("s2>d", s2.out, d.one)
    meet = dag.add_operator("meet", Meet(windows=windows))
    for name, port in ((left, meet.left), (right, meet.right)):
        dag.add_stream(f"{name}>{port.port.name}", dag.operator(name).out, port)
    return [note.problem for note in compiled(dag).notes if note.code == "windows-apart"]


@pytest.mark.parametrize(
    ("left", "right", "windows", "apart"),
    [
        ("b", "a", 1, []),
        ("b", "d", None, []),
        ("b", "d", 1, ["meet brings together items of one window, and s1 and s2 may send them in other windows"]),
        (
            "b",
            "d",
            5,
            ["meet brings together items of at most 5 windows, and s1 and s2 may send them in other windows"],
        ),
    ],
    ids=["one source", "all windows", "two sources", "some windows"],
)
def test_items_that_meet_in_a_window_and_may_arrive_in_others_are_reported(left, right, windows, apart):
    assert meeting(left, right, windows) == apart
