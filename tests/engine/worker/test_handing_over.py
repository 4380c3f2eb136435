"""Slots in threads hand work over through a board on sockets, and a cut changes nothing but the time."""

import os
import resource
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit.api.running import Until
from dagkit.backends.reference import ReferenceBackend
from dagkit.backends.reference.plain_reading import PlainReading
from dagkit.compiler import compile_application
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Split
from dagkit.engine.record.history import history
from dagkit.engine.record.run_events import Observer, RunEvent, SlotAtWork, Working
from dagkit.engine.run.loop import Loop
from dagkit.engine.work.handover import BoardPlace, Handover, Hello, Message, SlotStanding, Standing, ToSlot
from dagkit.engine.work.split import HANDED
from dagkit.engine.worker import slot_link
from dagkit.engine.worker.board_server import BoardServer
from dagkit.engine.worker.protocol import WindowTask
from dagkit.engine.worker.slot_link import SlotLink
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.stores import MemoryStore
from dagkit.ranges import OffsetRange, RestrictionTracker
from tests.backends.slots import SlotsAtOnce
from tests.engine.cast import Hurried
from tests.engine.items import waiting
from tests.engine.parts.cast import facts_in
from tests.engine.restriction_cast import CountFn, ShardReader, TableReader
from tests.engine.work_cast import Looks, Named, Numbered, numbers_expected, numbers_of_names
from tests.engine.worker.test_reading import Hooked, elements_of
from tests.examples import examples
from tests.patience import within

SECONDS = within(20)
"""The longest time for which a slot waits until another one has taken work."""
COUNT = 40
LASTS_MILLIS = 60_000.0


class Slow(Numbered):
    """Waits at the second number until another slot works, too, or until a connection was cut."""

    kind = "cast.slow/1"
    goes_on: ClassVar[threading.Event] = threading.Event()
    slots: ClassVar[set[int]] = set()
    alone: ClassVar[int] = 1
    """The slots wait until more than these work."""

    def process(self, element: Named, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[tuple[str, int]]:
        for name, number in super().process(element, tracker):
            Slow.slots.add(threading.get_ident())
            if len(Slow.slots) > Slow.alone:
                Slow.goes_on.set()
            if number:
                Slow.goes_on.wait(SECONDS)
            yield name, number


class Cutting(BoardServer):
    """Cuts the connection of a slot at the message of this kind and number, in either direction."""

    def __init__(self, kind: str, number: int) -> None:
        super().__init__("127.0.0.1", "127.0.0.1")
        self._left = Counter({kind: number})
        self.has_cut = False

    def take(self, window: Any, seat: Any, message: Message) -> None:
        self._count(message)
        super().take(window, seat, message)

    def deliver(self, connection: socket.socket, message: ToSlot) -> None:
        self._count(message)
        super().deliver(connection, message)

    def _count(self, message: Message) -> None:
        self._left[message.kind] -= 1
        if self._left[message.kind] == 0:
            self.has_cut = True
            Slow.goes_on.set()
            raise ConnectionError("cut by the test")


LOOKS: Looks = ((("x", COUNT),),)


def run_with(
    board: BoardServer | None = None, slots: int = 3, alone: int = 1, observers: Sequence[Observer] = ()
) -> Ledger:
    """Run to the end with a board, check the results, and return the ledger."""
    board = board or BoardServer("127.0.0.1", "127.0.0.1")
    Slow.goes_on.clear()
    Slow.slots.clear()
    Slow.alone = alone
    compilation = compile_application(numbers_of_names(LOOKS, readers=slots, kind=Slow))
    ledger, backend = Ledger(MemoryStore()), Hurried(SlotsAtOnce(compilation, board), LASTS_MILLIS)
    settings = RunSettings("nowhere", until=Until.ONCE)
    loop = Loop(RunState(compilation, backend, ledger, settings, observers=observers))
    with closing(board):
        loop.run()
    assert verify(ledger).faults == ()
    collected = [tuple(item["~tuple"]) for state in loop.state["collect"] for item in state["arrived"]]
    assert sorted(collected) == numbers_expected(LOOKS, 0, doubled=False)
    return ledger


def test_an_idle_slot_takes_work_in_the_same_window_and_the_ledger_records_it():
    ledger = run_with()
    assert len(list(history(ledger))) == 1, "no other window was needed"
    first, *_ = [fact for fact in facts_in(ledger, Split) if fact.why == HANDED]
    assert (first.source, first.start, first.end) == ('["x",40]', 0, COUNT)


class Asking(BoardServer):
    """A board that is asked for what slots process while it sends a message."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1", "127.0.0.1")
        self.answered: list[bool] = []

    def deliver(self, connection: socket.socket, message: ToSlot) -> None:
        asking = threading.Thread(target=self.running, daemon=True)
        asking.start()
        asking.join(within(10))
        self.answered.append(not asking.is_alive())
        super().deliver(connection, message)


def test_a_slot_that_takes_its_message_slowly_does_not_hold_up_the_board():
    board = Asking()
    run_with(board)
    assert set(board.answered) == {True}


@pytest.mark.slow
def test_observers_see_what_slots_process():
    seen: list[SlotAtWork] = []

    def observe(event: RunEvent) -> None:
        if isinstance(event, Working):
            seen.extend(event.work)
            Slow.goes_on.set()

    run_with(alone=99, observers=[observe])
    assert {(one.window_id, one.operator, one.source) for one in seen} == {(1, "numbered", '["x",40]')}
    assert all(one.fraction is not None and 0 <= one.fraction < 1 for one in seen)


@pytest.mark.slow
def test_a_cut_board_changes_no_result(trial):
    chance = Random(trial)  # noqa: S311 - it chooses what the test cuts
    kind = chance.choice(["progressed", "idle", "asked", "given", "handed"])
    board = Cutting(kind, chance.randint(1, 2) if kind == "progressed" else 1)
    run_with(board, slots=chance.randint(2, 4))
    assert board.has_cut


class Reported(BoardServer):
    """A board that says when it has a report of a slot."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1", "127.0.0.1")
        self.taken = {"progressed": threading.Event(), "last": threading.Event()}

    def take(self, window: Any, seat: Any, message: Message) -> None:
        super().take(window, seat, message)
        self.taken["progressed" if message.standing.name else "last"].set()


@pytest.fixture(params=[0, 1024], ids=["few files", "more open files than select can name"])
def open_files(request):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    with ExitStack() as files:
        for _ in range(request.param):
            files.enter_context(Path(os.devnull).open())
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("open_files")
def test_a_slot_that_hands_no_work_over_reports_what_it_has_done(monkeypatch):
    monkeypatch.setattr(slot_link, "WATCHED_AFTER_SECONDS", 0.0)
    into, busy, shares = Address("reader.blocks"), Standing("a", 0.5, done=3), {"Score": 0.9}
    with (
        closing(Reported()) as board,
        board.window(1, {into: 2}, frozenset(), 2) as place,
    ):
        link = SlotLink(place, into, 0, hands_over=False, shares=lambda: shares)
        link.open(SimpleNamespace(give=lambda: None, standing=lambda: busy))
        assert board.taken["progressed"].wait(within(10))
        assert board.running() == [SlotStanding(1, into, 0, replace(busy, shares=shares))]
        assert link.more(lambda: False) is None
        assert not link.is_up
        busy, shares = Standing(done=4), {}
        link.close()
        assert board.taken["last"].wait(within(10))
        assert board.running() == [SlotStanding(1, into, 0, busy)]


def test_a_slot_with_a_wrong_token_or_of_another_attempt_gets_no_place():
    into = Address("reader.blocks")
    with (
        closing(BoardServer("127.0.0.1", "127.0.0.1")) as board,
        board.window(1, {into: 2}, frozenset(), 2) as place,
    ):
        for wrong in (replace(place, token=place.window), replace(place, window="x")):
            assert_no_work(wrong, into)
        with socket.socket() as connection:
            assert board.begin(Hello(place.token, place.window, into, 0), connection) is not None


def test_a_slot_that_finds_no_board_works_without_it():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert_no_work(BoardPlace("127.0.0.1", port, "", ""), Address("reader.blocks"))


def assert_no_work(place: BoardPlace, into: Address) -> None:
    """A slot without work gets none at this place."""
    link = SlotLink(place, into, 0)
    link.open(SimpleNamespace(give=lambda: None, standing=Standing))
    assert link.more(lambda: False) is None


@dataclass
class PlainBoard:
    """The work that the partitions of one window of the reference hand over."""

    asks: Callable[[], bool]
    loses: Callable[[], bool]
    """Whether the board loses a handover; called for each."""
    offered: list[Handover] = field(default_factory=list)
    """The handovers that no partition has taken."""

    def offer(self, handover: Handover) -> None:
        if not self.loses():
            self.offered.append(handover)

    def taken(self, into: str) -> Handover | None:
        found = next((each for each in self.offered if each.into == into), None)
        if found is not None:
            self.offered.remove(found)
        return found


NAMES: Looks = ((("x", 9), ("y", 2), ("z", 5)), (("w", 7),))
KINDS = [Numbered, CountFn, TableReader, ShardReader]
SEEDS = st.integers(0, 2**32)


def run(draw: Any, seed: int, *, gives: float, loses: float, path: str = "nowhere") -> tuple[Ledger, Loop]:
    """Run an application whose partitions give and lose work with these probabilities."""
    chance = Random(seed)  # noqa: S311 - it chooses what is handed over
    compilation, ledger = compile_application(draw), Ledger(MemoryStore())
    backend = ReferenceBackend(
        compilation, board=lambda: PlainBoard(lambda: chance.random() < gives, lambda: chance.random() < loses)
    )
    loop = Loop(RunState(compilation, backend, ledger, RunSettings(path, until=Until.ONCE)))
    loop.run()
    assert verify(ledger).faults == ()
    return ledger, loop


def collected(loop: Loop) -> list[tuple[Any, ...]]:
    return sorted(tuple(item["~tuple"]) for state in loop.state["collect"] for item in state["arrived"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("senders", [0, 2])
def test_work_of_any_kind_is_handed_over_once(kind, senders):
    draw = numbers_of_names(NAMES, readers=3, senders=senders, kind=kind)
    ledger, loop = run(draw, 1, gives=0.5, loses=0.0)
    assert collected(loop) == numbers_expected(NAMES, 0, doubled=senders > 0)
    assert HANDED in {fact.why for fact in facts_in(ledger, Split)}


class WithEmptyParts(Numbered):
    """Is divided into an empty part, a half, another empty part and the rest."""

    kind = "cast.with-empty-parts/1"

    def split(self, element: Named, restriction: OffsetRange) -> Iterator[OffsetRange]:
        start, middle = restriction.start, (restriction.start + restriction.stop) // 2
        edges = (start, start, middle, middle, restriction.stop)
        yield from (OffsetRange(*each) for each in pairwise(edges))


@pytest.mark.parametrize("gives", [0.0, 0.5])
@pytest.mark.parametrize("senders", [0, 2])
def test_parts_may_be_empty(senders, gives):
    draw = numbers_of_names(NAMES, readers=3, senders=senders, kind=WithEmptyParts)
    _, loop = run(draw, 1, gives=gives, loses=0.0)
    assert collected(loop) == numbers_expected(NAMES, 0, doubled=senders > 0)


@given(SEEDS, st.sampled_from(KINDS), st.integers(1, 4), st.integers(0, 2), st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=examples(40))
@pytest.mark.slow
def test_a_lost_handover_changes_no_result(seed, kind, readers, senders, loses):
    draw = numbers_of_names(NAMES, readers=readers, senders=senders, kind=kind)
    _, loop = run(draw, seed, gives=0.4, loses=loses)
    assert collected(loop) == numbers_expected(NAMES, 0, doubled=senders > 0)


def test_items_that_are_equal_are_handed_over_one_by_one():
    board = PlainBoard(lambda: not board.offered, lambda: False)
    read: list[int] = []
    reading = PlainReading(elements_of(Hooked(), read.append), 0, WindowTask(1), None, board=board)
    reading.work([waiting(1, start, end, reading.elements.into) for start, end in ((0, 2), (5, 7), (5, 7))], [])
    assert read == [0, 1, 5, 6, 5, 6], "the partition takes back what it gave"
