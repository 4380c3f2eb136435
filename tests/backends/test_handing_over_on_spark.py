"""On Spark, an idle worker takes work of a busy one in the same window."""

import os
import select
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dagkit import Config
from dagkit.api.running import Until
from dagkit.backends.spark import SparkBackend
from dagkit.backends.spark.window.boards import Boards
from dagkit.compiler import compile_application
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.program.facts import Split
from dagkit.engine.program.lower import program_of
from dagkit.engine.record.history import history
from dagkit.engine.run.loop import Loop
from dagkit.engine.work.split import HANDED
from dagkit.engine.worker.protocol import Attempt, WindowTask
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.stores import MemoryStore
from dagkit.ranges import OffsetRange, RestrictionTracker
from tests.engine.cast import Hurried
from tests.engine.work_cast import Looks, Named, Numbered, numbers_expected, numbers_of_names
from tests.patience import within

COUNT = 40
LASTS_MILLIS = 60_000.0
WAITS_MILLIS = int(within(20) * 1000)
"""The longest time for which a slot waits; without a board it would wait for nothing."""


class Meeting(Numbered):
    """The first slot waits at its second number until another slot works, too."""

    folder: str
    waits_millis: int

    def process(self, element: Named, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[tuple[str, int]]:
        for name, number in super().process(element, tracker):
            if not number:
                self._pipe = os.open(Path(self.folder, "pipe"), os.O_RDONLY | os.O_NONBLOCK)
            elif number == 1:
                poll = select.poll()
                poll.register(self._pipe, select.POLLIN)
                poll.poll(self.waits_millis)
                os.close(self._pipe)
            elif number == tracker.current_restriction().start:
                pipe = os.open(Path(self.folder, "pipe"), os.O_RDWR)
                os.write(pipe, b".")
                os.close(pipe)
            yield name, number


@pytest.mark.parametrize("hands_over", [True, pytest.param(False, marks=pytest.mark.trial)])
def test_an_idle_worker_takes_work_of_a_busy_one(spark, tmp_path, hands_over):
    looks: Looks = ((("x", COUNT),),)
    os.mkfifo(tmp_path / "pipe")
    given = {"folder": str(tmp_path), "waits_millis": WAITS_MILLIS if hands_over else 0}
    draw = numbers_of_names(looks, kind=lambda **more: Meeting(**given, **more))
    compilation = compile_application(draw, Config.of({"dt.attr.HAND_OVER_WORK": hands_over}))
    ledger = Ledger(MemoryStore())
    with closing(SparkBackend(compilation, spark)) as backend:
        loop = Loop(RunState(compilation, Hurried(backend, LASTS_MILLIS), ledger, RunSettings("nowhere", Until.ONCE)))
        loop.run()
    assert verify(ledger).faults == ()
    collected = [tuple(item["~tuple"]) for state in loop.state["collect"] for item in state["arrived"]]
    assert sorted(collected) == numbers_expected(looks, 0, doubled=False)
    facts = [fact for entry in history(ledger) for fact in entry.checkpoint.facts]
    assert any(isinstance(fact, Split) and fact.why == HANDED for fact in facts) is hands_over


@pytest.mark.trial
def test_a_board_that_no_worker_reaches_is_not_served_again(spark, caplog):
    program = program_of(compile_application(numbers_of_names(((("x", 1),),))))
    task = WindowTask(1, attempt=Attempt(movable=frozenset(program.queued_slots)))
    with closing(Boards(spark)) as boards:
        for is_first in (True, False):
            with boards.serving(task, program, 2) as served:
                assert (served.attempt.board is not None) == is_first
    assert "no worker reached the driver" in caplog.text
