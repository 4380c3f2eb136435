"""Large state on Spark: a window sends to a worker, and back, what changed; the result is that of the reference."""

from typing import Any

import pytest

from dagkit import Config, Dag, InputPort, KeyedState, Operator
from dagkit.api.keyed import saved_keys
from dagkit.backends.spark import SparkBackend
from dagkit.compiler import compile_application
from dagkit.engine.program.points import Point
from dagkit.engine.run.loop import Loop
from dagkit.engine.worker.protocol import Backend
from dagkit.testing.crashes import CrashAfter
from tests.backends.cast import chained
from tests.engine.cast import Desk, Script

KEYS = 30_000
MANY = tuple(range(KEYS))
LOOKS = (MANY, (1, 2, KEYS + 5), MANY[:50], (3,), MANY, (1,))


class Tally(Operator):
    """Counts numbers and forgets some of them."""

    numbers = InputPort(int, key=lambda number: number)
    counts = KeyedState[int, str](str)

    def process(self, item: int) -> None:
        self.counts[item] += "+"
        if item % 7 == 3 and self.counts[item] == "++":
            del self.counts[item]


def draw(dag: Dag, _: Any) -> None:
    chained(dag, {"tally": 2}, script=Script(looks=LOOKS, pause_millis=0), tally=Tally())


def counts(loop: Loop) -> dict[str, str]:
    entries = [saved_keys(state["counts"]) for state in loop.state["tally"]]
    return {text: value for each in entries for text, (value, _) in each.items()}


def expected() -> dict[str, str]:
    found: dict[str, str] = {}
    for number in (number for look in LOOKS for number in look):
        found[str(number)] = found.get(str(number), "") + "+"
        if number % 7 == 3 and found[str(number)] == "++":
            del found[str(number)]
    return found


class Noting(SparkBackend):
    sizes: list[int]

    def _given(self, *given: Any) -> Any:
        by_level = super()._given(*given)
        self.sizes.append(sum(len(data) for by_slot in by_level.values() for data in by_slot.values()))
        return by_level


@pytest.mark.trial
def test_a_window_sends_what_changed_and_a_new_launch_begins_with_all(spark, tmp_path):
    compilation, sizes = compile_application(draw, Config()), list[int]()

    def on_spark(_: Backend) -> Backend:
        backend = Noting(compilation, spark)
        backend.sizes = sizes
        return backend

    desk = Desk(tmp_path, draw, backend=on_spark)
    assert desk.crash(CrashAfter(Point.STAGED, 3), CrashAfter(Point.APPENDED, 4)) == 2
    assert counts(desk.run()) == expected()
    assert desk.faults() == []
    assert sizes[0] > 10_000
    assert min(sizes) < 2_000
    assert sorted(sizes)[len(sizes) // 2] < 10_000
