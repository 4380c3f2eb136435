"""An operator that joins items of a few windows is reported if its inputs need not arrive together."""

from dagkit import InputPort, Operator
from tests.cases import cases
from tests.compiler.cast import compiled
from tests.compiler.sketches import sketch


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


APART = "meet brings together items of {}, and s1 and s2 may send them in other windows"


@cases(
    "right, windows, apart",
    ("one source", "a", 1, []),
    ("all windows", "d", None, []),
    ("two sources", "d", 1, [APART.format("one window")]),
    ("some windows", "d", 5, [APART.format("at most 5 windows")]),
)
def test_items_that_meet_in_a_window_and_may_arrive_in_others_are_reported(right, windows, apart):
    dag = sketch(f"s1>a a>b s2>d b>meet.left {right}.more>meet.right", meet=Meet(windows=windows))
    assert [note.problem for note in compiled(dag).notes if note.code == "windows-apart"] == apart
