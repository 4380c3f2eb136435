"""Two drivers of one application: one wins, the other stops and does no harm."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dagkit.compiler import compile_application
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.points import Point
from dagkit.engine.record.journal import Journal
from dagkit.engine.work.item import WindowPromise
from dagkit.engine.worker.protocol import Answer, WindowTask
from dagkit.ledger import BlockRefused, Ledger, SequenceTaken
from dagkit.ledger.chain.log import Log
from dagkit.testing.crashes import CrashAfter
from tests.engine.cast import Around, Desk, files_in, numbers_collected, with_lines
from tests.patience import join


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    desk = with_lines(tmp_path_factory.mktemp("undisturbed"))
    desk.run()
    return desk.outputs()


@dataclass
class Elsewhere:
    """Lets another driver run at one step of one window of the first one."""

    point: Point
    window_id: int
    other: Callable[[], Any]
    came: list[Any] = field(default_factory=list)

    def __call__(self, point: Point, window_id: int) -> None:
        if (point, window_id) == (self.point, self.window_id) and not self.came:
            self.came.append(self.other())


@pytest.mark.gate(5)
@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("point", Point)
def test_a_driver_that_is_overtaken_stops_and_does_no_harm(tmp_path, undisturbed, point, window):
    desk = with_lines(tmp_path)
    probe = Elsewhere(point, window, desk.run)
    with pytest.raises(SequenceTaken, match=r"another writer has appended this block(?s:.*): stop one of the two"):
        desk.run(probe=probe)
    assert len(probe.came) == 1
    assert (desk.outputs(), desk.faults()) == (undisturbed, [])
    desk.run()
    assert (desk.outputs(), desk.leftovers()) == (undisturbed, [])


@pytest.mark.parametrize("point", [Point.PLANNED, Point.RUNNING, Point.STAGED])
def test_a_second_driver_that_is_not_faster_stops_and_sweeps_nothing(tmp_path, undisturbed, point):
    """The second comes while the first has a window in flight, and is held up until the first has committed it."""
    desk = with_lines(tmp_path)
    probe = Elsewhere(point, 1, desk.loop)
    desk.run(probe=probe, windows=1)
    staged = files_in(Path(desk.place) / "staging")
    with pytest.raises(SequenceTaken):
        probe.came[0].run()
    assert set(staged) <= set(files_in(Path(desk.place) / "staging"))
    desk.run()
    assert (desk.outputs(), desk.troubles()) == (undisturbed, [])


def test_a_plan_that_another_driver_promised_is_not_run_as_ones_own(tmp_path):
    desk = Desk(tmp_path, numbers_collected(((4, 4, 4), (5,))))
    desk.run(windows=1)
    late = desk.loop()
    assert desk.crash(CrashAfter(Point.PLANNED, 2)) == 1
    with pytest.raises(SequenceTaken, match="another driver promised another plan of this window"):
        late.run_state.journal.promise({}, WindowPromise(deal={}, lasts_millis=1.0))


@dataclass
class Slow(Around):
    """A backend that waits until another driver has tidied up, and then finds its folder gone."""

    meanwhile: Callable[[], object]

    def run(self, assignment: WindowTask) -> Answer:
        self.meanwhile()
        raise OSError("the staged pieces are gone")


def test_what_fails_for_another_driver_is_reported_as_that_and_what_fails_for_its_own_reason_is_not(tmp_path):
    desk, other = with_lines(tmp_path / "one"), with_lines(tmp_path / "other")
    with pytest.raises(SequenceTaken) as raised:
        replace(desk, backend=lambda backend: Slow(backend, desk.run), overlap=1).run()
    assert "the staged pieces are gone" in str(raised.value.__cause__)
    with pytest.raises(OSError, match="the staged pieces are gone") as failed:
        replace(other, backend=lambda backend: Slow(backend, lambda: None), overlap=1).run()
    assert not isinstance(failed.value, SequenceTaken | OperatorFailed)
    other.run()
    assert other.troubles() == []


@pytest.mark.parametrize("windows", [0, 1, 2])
def test_a_driver_that_opened_the_ledger_and_then_lay_still_finds_nothing_again(tmp_path, undisturbed, windows):
    desk = with_lines(tmp_path)
    desk.run(windows=windows)
    late = desk.loop()
    desk.run()
    with pytest.raises(SequenceTaken):
        late.run()
    assert (desk.outputs(), desk.troubles()) == (undisturbed, [])


@pytest.mark.gate(2)
@pytest.mark.slow
@pytest.mark.parametrize("again", range(5))
def test_of_drivers_that_begin_together_the_ledger_believes_one_at_a_time(tmp_path, undisturbed, again):
    desk = with_lines(tmp_path)
    told: list[str] = []

    def drive() -> None:
        try:
            desk.run()
        except Exception as error:  # noqa: BLE001 - judged below, where a test may fail
            told.append("" if isinstance(error, SequenceTaken | BlockRefused) else repr(error))
        else:
            told.append("")

    racing = [threading.Thread(target=drive) for _ in range(3)]
    for each in racing:
        each.start()
    for each in racing:
        join(each)
    assert told == ["", "", ""]
    desk.run()
    assert (desk.outputs(), desk.troubles()) == (undisturbed, [])


def test_a_window_that_another_driver_ran_in_the_meantime_is_not_run_again(tmp_path, undisturbed):
    desk = with_lines(tmp_path)
    assert desk.crash(CrashAfter(Point.PLANNED, 2)) == 1
    desk.run(windows=1)
    late = desk.loop()  # what window 2 is to be given was found, and nothing is promised
    desk.run(windows=1)
    with pytest.raises(SequenceTaken, match="another writer has appended this block"):
        late.run()
    desk.run()
    assert (desk.outputs(), desk.faults()) == (undisturbed, [])


def test_a_commit_whose_answer_was_lost_keeps_its_pieces(tmp_path, undisturbed, monkeypatch):
    desk = with_lines(tmp_path)
    create, lost = Log.create, list[int]()

    def create_unheard(self: Log, seq: int, line: bytes) -> None:
        create(self, seq, line)
        if b"ExecuteTransform" in line and not lost:
            lost.append(seq)
            raise self.taken(seq)

    monkeypatch.setattr(Log, "create", create_unheard)
    with pytest.raises(SequenceTaken):
        desk.run()
    assert len(lost) == 1
    desk.run()
    assert (desk.outputs(), desk.leftovers()) == (undisturbed, [])


@pytest.mark.parametrize("point", [Point.APPENDED, Point.HALF_FINISHED])
def test_what_another_driver_committed_is_not_swept_by_one_that_was_held_up(tmp_path, undisturbed, point):
    """The first is held up between its commit and its first sweep; the second is killed over its own commit."""
    desk = with_lines(tmp_path)
    probe = Elsewhere(point, 1, lambda: desk.crash(CrashAfter(Point.APPENDED, 3)))
    with pytest.raises(SequenceTaken):
        desk.run(probe=probe)
    assert probe.came == [1]
    desk.run()
    assert (desk.outputs(), desk.troubles()) == (undisturbed, [])


def test_who_opens_while_another_finds_and_promises_is_informed_that_there_is_another(tmp_path):
    desk = with_lines(tmp_path)
    program = program_of(compile_application(desk.draw))
    slow = Journal(Ledger.create(desk.place, durable=False), program, "", "")
    assert desk.crash(CrashAfter(Point.PLANNED, 1)) == 1  # another one finds work, promises it, and is gone
    slow.checkpoint()
    with pytest.raises(SequenceTaken):
        slow.promised()
