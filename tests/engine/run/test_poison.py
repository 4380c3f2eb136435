"""A record that ends its process is found, and set aside or reported; the rest is processed exactly once."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dagkit import InputPort, OutputPort, SplittableOperator, State
from dagkit.api.running import Until
from dagkit.engine.parts.requests import GiveUp, Retry, reply_to, withdraw
from dagkit.engine.program.points import Point
from dagkit.engine.record.history import history, newest_checkpoint
from dagkit.engine.record.run_events import RunEvent, Waiting
from dagkit.engine.record.work_history import aside_in, listed_work
from dagkit.errors import RunFailure
from dagkit.ledger.audit.verify import verify
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit.ranges.restriction import claimed_runs
from dagkit.testing import FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import FileSplitterInput, Filter, LineReader, RecordWriter
from tests.engine.cast import Collect, Desk, Digits, Ranges, arrived, chain, files_given
from tests.engine.poison_cast import (
    ON_POISON,
    TIMEOUT,
    Poisoned,
    Way,
    ask_of,
    die,
    killed,
    lines_of_blocks,
    lines_of_matches,
    poisoned,
    poisoned_names,
    set_aside,
)
from tests.engine.restriction_cast import CountFn, Follower, ShardReader, TableReader
from tests.engine.work_cast import Looks, Named, Numbered, numbers_expected

MANY = 10_000
LOOKS = ((MANY // 2, MANY // 2),)


def desk_with(tmp_path: Path, *poison: int, way: Way = "signal", decision: str = "SET_ASIDE") -> Desk:
    conf = {ON_POISON: decision, **({TIMEOUT: 600_000} if way == "loop" else {})}
    return Desk(tmp_path, poisoned(LOOKS, *poison, way=way), conf=conf, clock=FakeClock())


def others(*poison: int) -> list[int]:
    return [number for number in range(MANY) if number not in poison]


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "exit_code", "reason"),
    [
        *(("loop", 0, "Timeout"), ("exception", 0, "ValueError: poison")),
        *(("signal", -11, "SIGSEGV"), ("null pointer", -11, "SIGSEGV"), ("memory", 0, "MemoryError")),
    ],
)
def test_a_record_is_set_aside_however_it_stops_its_process(way, exit_code, reason, tmp_path):
    """At once if the process survives it, else by the next launch."""
    desk = desk_with(tmp_path, 7_654, way=way)
    assert killed(desk) == exit_code
    assert sorted(arrived(desk.run() if exit_code else desk.loop())) == others(7_654)
    assert (set_aside(desk), desk.faults()) == ([(7_654, 7_655)], [])
    (proven,) = verify(desk.ledger()).proven
    assert ([str(span) for span in proven.aside], proven.positions) == (["numbers[7654, 7655)"], MANY - 1)
    last = aside_in(newest_checkpoint(desk.ledger())).last_aside
    assert last.startswith("numbers[7654, 7655): ")
    assert reason in last


@pytest.mark.slow
def test_a_run_reports_in_how_much_work_it_searches(tmp_path):
    events: list[RunEvent] = []
    desk_with(tmp_path, 7_654, way="exception").run(observers=[events.append])
    reasons = [reason for event in events if isinstance(event, Waiting) for reason in event.reasons]
    (first, *_), last = reasons, [event for event in events if isinstance(event, Waiting)][-1]
    assert first.endswith(": the record that fails is searched for, in 5.0 kB"), reasons
    assert last.reasons == [], "it is found"


@pytest.mark.trial
@pytest.mark.slow
def test_two_records_are_set_aside_and_retried_once_after_the_operator_was_corrected(tmp_path):
    desk = desk_with(tmp_path, 17, 18)
    assert killed(desk) == -11
    assert (sorted(arrived(desk.run())), set_aside(desk)) == (others(17, 18), [(17, 18), (18, 19)])
    ask_of(desk, Retry(by="ada", names=("numbers",), start=18, end=19))
    corrected = replace(desk, draw=poisoned(LOOKS))
    corrected.crash(*(CrashAfter(point) for point in Point))
    assert (sorted(arrived(corrected.run())), set_aside(desk)) == (others(17), [(17, 18)])
    ask_of(desk, GiveUp(by="ada", names=("numbers",)))
    assert (sorted(arrived(corrected.run())), set_aside(desk)) == (others(17), [])
    (proven,) = verify(desk.ledger()).proven
    assert ([str(span) for span in proven.given_up], proven.aside) == (["numbers[17, 18)"], ())
    assert desk.faults() == []


@pytest.mark.trial
@pytest.mark.slow
def test_without_the_setting_the_application_stops_at_the_record_until_it_is_given_up(tmp_path):
    desk = desk_with(tmp_path, 4_321, decision="STOP")
    assert killed(desk) == -11
    for _ in range(2):
        with pytest.raises(
            RunFailure, match=r"digits reads ends its worker in poisoned, at numbers.*4321.*SIGSEGV"
        ) as raised:
            desk.run()
        assert (raised.value.scene.source, raised.value.scene.position) == ("numbers", 4_321)
        assert "`dagkit work give-up APP 'numbers[4321, 4322)' --at-launch`" in raised.value.help
    listed = [(each.state, each.place.start) for each in listed_work(desk.ledger())]
    assert ("suspect", 4_321) in listed
    ask_of(desk, GiveUp(by="ada", names=("numbers",), start=4_321, end=4_322))
    assert sorted(arrived(desk.run())) == others(4_321)
    assert desk.faults() == []


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize(("point", "step"), [(Point.APPENDED, 1), (Point.PLANNED, 2), (Point.STAGED, 2)])
def test_a_search_continues_where_the_driver_was_killed(point, step, tmp_path):
    desk = desk_with(tmp_path, 2_345)
    assert killed(desk) == -11
    first = desk.loop().run_state.checkpoint.window
    assert desk.crash(CrashAfter(point, first + step)) == 1
    assert (sorted(arrived(desk.run())), set_aside(desk)) == (others(2_345), [(2_345, 2_346)])
    assert desk.faults() == []
    assert len(list(history(desk.ledger()))) < 6, "the search does not begin again"


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize("draw", [lines_of_blocks, lines_of_matches], ids=["blocks", "files found in the graph"])
def test_a_line_of_a_file_is_set_aside_wherever_its_file_was_found(draw, tmp_path):
    lines = [[f"{name} {number}" for number in range(60)] for name in "abc"]
    poisoned = [lines[0], [*lines[1][:40], "poison", *lines[1][40:]], lines[2]]
    files_given(tmp_path, *("".join(f"{line}\n" for line in each) for each in poisoned))
    desk = Desk(tmp_path, draw(tmp_path), conf={ON_POISON: "SET_ASIDE"})
    assert killed(desk) == -11
    assert sorted(arrived(desk.run())) == sorted(line for kept in lines for line in kept)
    ((start, end),) = set_aside(desk)
    assert (tmp_path / "in" / "1.txt").read_bytes()[start:].lstrip().startswith(b"poison")
    assert end - start == 1
    assert desk.faults() == []


@pytest.mark.trial
@pytest.mark.slow
def test_a_retry_whose_driver_is_killed_is_repeated_with_its_window_even_if_it_is_withdrawn(tmp_path):
    desk = desk_with(tmp_path, 17)
    assert killed(desk) == -11
    last = desk.run().checkpoint.window
    asked = ask_of(desk, Retry(by="ada"))
    corrected = replace(desk, draw=poisoned(LOOKS), clock=None)
    assert corrected.crash(CrashAfter(Point.PLANNED, last + 1)) == 1
    withdraw(desk.ledger().store, asked)
    assert (sorted(arrived(corrected.run())), set_aside(desk)) == (others(), [])
    assert desk.faults() == []


@pytest.mark.slow
def test_a_record_of_a_block_whose_file_is_complete_is_not_retried(tmp_path):
    def fatal(line: str) -> bool:
        if line == "poison":
            die("signal")
        return True

    splitter = FileSplitterInput(scanner={"files": [str(tmp_path / "in")]})
    writer = RecordWriter(file_path=str(tmp_path / "out"))
    files_given(tmp_path, "one\npoison\ntwo\n")
    draw = chain(splitter=splitter, reader=LineReader(), filter=Filter(fatal), writer=writer)
    desk = Desk(tmp_path, draw, conf={ON_POISON: "SET_ASIDE"})
    assert killed(desk) == -11
    desk.run()
    asked = ask_of(desk, Retry(by="ada"))
    desk.run()
    assert "are complete without this work" in str(reply_to(desk.ledger().store, asked).refused)
    assert list(desk.outputs().values()) == [b"one\ntwo\n"]
    assert (len(set_aside(desk)), desk.faults()) == (1, [])


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize("kind", [CountFn, TableReader, ShardReader])
def test_a_record_is_set_aside_whatever_the_restriction_of_its_work_is(kind, tmp_path):
    looks: Looks = ((("x", 60), ("y", 20)), (("z", 30),))
    desk = Desk(tmp_path, poisoned_names(looks, 41, kind=kind), conf={ON_POISON: "SET_ASIDE"}, clock=FakeClock())
    assert killed(desk) == -11
    expected = [(name, number) for name, number in numbers_expected(looks, 0, doubled=False) if number != 41]
    assert sorted(map(tuple, arrived(desk.run()))) == expected
    assert len(set_aside(desk)) == 1
    assert desk.faults() == []
    ask_of(desk, Retry(by="ada"))
    corrected = replace(desk, draw=poisoned_names(looks, kind=kind))
    assert sorted(map(tuple, arrived(corrected.run()))) == numbers_expected(looks, 0, doubled=False)
    assert (set_aside(desk), desk.faults()) == ([], [])


def following(home: Path, looks: Looks, kind: type) -> Desk:
    draw = poisoned_names(looks, 23, kind=kind, by_now=60)
    return Desk(home, draw, conf={ON_POISON: "SET_ASIDE"}, clock=FakeClock(), until=Until.IDLE)


@pytest.mark.trial
@pytest.mark.slow
def test_a_record_of_work_without_an_end_is_set_aside_and_the_work_continues(tmp_path):
    looks: Looks = ((("tail", -1), ("x", 9)),)
    desk = following(tmp_path, looks, Numbered)
    assert killed(desk) == -11
    expected = [pair for pair in numbers_expected(looks, 60, doubled=False) if pair != ("tail", 23)]
    assert sorted(map(tuple, arrived(desk.run()))) == expected
    assert set_aside(desk) == [(23, 24)]
    later = replace(desk, draw=poisoned_names(looks, 23, kind=Numbered, by_now=80))
    assert sorted(map(tuple, arrived(later.run()))) == sorted([*expected, *(("tail", at) for at in range(60, 80))])
    assert desk.faults() == []


@pytest.mark.slow
def test_the_place_of_a_record_in_work_that_cannot_be_divided_is_reported(tmp_path):
    """A tracker with no halves and no end: no part of it could be set aside."""
    desk = following(tmp_path, ((("tail", -1),),), Follower)
    assert killed(desk) == -11
    with pytest.raises(RunFailure, match=r"numbered reads ends its worker in poisoned, at .*tail") as raised:
        desk.run()
    assert raised.value.help.startswith("correct poisoned, then launch again;")
    assert raised.value.help.endswith("with `dagkit work give-up APP '[\"tail\",-1]' --at-launch`")


class Polled(SplittableOperator[Named]):
    """Emits each number of a name, after a claim of many."""

    names = InputPort[Named](main=True)
    numbers = OutputPort[tuple[str, int]](main=True)
    by_now: int = 0
    run: int = 500

    def initial_restriction(self, element: Named) -> OffsetRange:
        return OffsetRange(0, element[1])

    def process(self, element: Named, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[tuple[str, int]]:
        for run in claimed_runs(tracker, self.run):
            yield from ((element[0], number) for number in run)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "most"), [(Numbered, 2), (Polled, 4)], ids=["one by one", "in claims of 500"])
def test_other_work_is_done_with_the_window_that_failed_and_few_windows_search_the_rest(kind, most, tmp_path):
    desk = Desk(tmp_path, poisoned_names(((("x", 3_000), ("y", 50)),), 1_234, kind=kind), conf={ON_POISON: "SET_ASIDE"})
    assert killed(desk) == -11
    desk.run()
    windows = [each.checkpoint for each in history(desk.ledger())]
    assert (set_aside(desk), len(windows) <= most, desk.faults()) == ([(1_234, 1_235)], True, [])
    done = {(name, number) for name, number in windows[0].state["collect"][0]["arrived"]}
    assert {("y", number) for number in range(50)} | {("x", number) for number in range(1_000)} <= done


@pytest.mark.slow
def test_work_that_is_found_during_a_search_does_not_wait_for_its_end(tmp_path):
    looks = ((("x", 3_000),), (("y", 50),))
    desk = Desk(tmp_path, poisoned_names(looks, 1_234, kind=Polled), conf={ON_POISON: "SET_ASIDE"}, clock=FakeClock())
    assert killed(desk) == -11
    desk.run()
    windows = [each.checkpoint for each in history(desk.ledger())]
    names = [{name for name, _ in each.state["collect"][0]["arrived"]} for each in windows]
    is_searching = [each.search is not None for each in windows]
    assert (names.index({"x", "y"}) < is_searching.index(False), set_aside(desk)) == (True, [(1_234, 1_235)])
    assert desk.faults() == []


class Closing(Collect):
    """Ends its process at the end of a window with a certain number."""

    poison: int

    def end_window(self) -> None:
        if self.poison in self.arrived[self.before :]:
            die("signal")
        self.before = len(self.arrived)

    before = State(0)


@pytest.mark.slow
def test_a_record_that_ends_its_process_at_the_end_of_a_window_is_found_by_halves(tmp_path):
    draw = chain(ranges=Ranges(looks=((8,), (2,))), digits=Digits(), collect=Closing(poison=5))
    desk = Desk(tmp_path, draw, conf={ON_POISON: "SET_ASIDE"}, clock=FakeClock())
    assert killed(desk) == -11
    assert (sorted(arrived(desk.run())), set_aside(desk)) == ([0, 1, 2, 3, 4, 6, 7, 8, 9], [(5, 6)])
    windows = [each.checkpoint for each in history(desk.ledger())]
    other = next(each for each in windows if 9 in each.state["collect"][0]["arrived"])
    assert other.search is not None, "other work has its turn"
    assert desk.faults() == []


@pytest.mark.slow
def test_a_window_of_other_work_runs_beside_a_step_of_the_search(tmp_path):
    looks = ((3_000,), *((50,) for _ in range(8)))
    draw = chain(ranges=Ranges(looks=looks), digits=Digits(), poisoned=Poisoned(poison=(1_234, 3_111)))
    desk = Desk(tmp_path, draw, conf={ON_POISON: "SET_ASIDE"})
    assert killed(desk) == -11
    beside = []

    def probe(point, window_id):
        if point is Point.RUNNING and loop.parts.search.search is not None:
            beside.append(len(loop.run_state.in_flight))

    loop = desk.loop(probe=probe)
    loop.run()
    (proven,) = verify(desk.ledger()).proven
    assert (proven.positions, max(beside)) == (3_398, 2)
    assert (set_aside(desk), desk.faults()) == ([(1_234, 1_235), (3_111, 3_112)], [])
