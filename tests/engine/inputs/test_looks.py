"""Input operators look for more on the driver, set up once in a launch; each look gets the window that it is for."""

from pathlib import Path
from typing import ClassVar

from dagkit import Dag
from dagkit.api.running import Context, Until
from dagkit.testing import FakeClock
from tests.engine.cast import Collect, Desk, Script, arrived


class Heard(Script):
    """Records its callbacks, in order."""

    kind = "cast.heard/1"
    heard: ClassVar[list[str]] = []

    def setup(self, context: Context) -> None:
        self.heard.append("setup")

    def begin_window(self, window_id: int) -> None:
        self.heard.append(f"begin_{window_id}")

    def handle_idle_time(self) -> None:
        self.heard.append("idle")

    def end_window(self) -> None:
        self.heard.append("end")

    def teardown(self) -> None:
        self.heard.append("teardown")


def test_a_look_in_vain_is_followed_by_one_for_the_same_window(tmp_path: Path) -> None:
    def draw(dag: Dag, conf: object) -> None:
        heard = Heard(looks=((1,), (), (), (2,)), ends=True)
        dag.add_operator("heard", heard) >> dag.add_operator("collect", Collect())

    Heard.heard.clear()
    loop = Desk(tmp_path, draw, until=Until.STOPPED, clock=FakeClock()).run()
    assert (arrived(loop), loop.checkpoint.window) == ([1, 2], 2)
    looks = ["begin_1 end", "begin_2 idle end", "begin_2 idle end", "begin_2 end", "begin_3 end"]
    assert Heard.heard == ["setup", *" ".join(looks).split(), "teardown"]
