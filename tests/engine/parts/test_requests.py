"""What is asked of a running application takes effect between two windows, or is refused in words; and it stays."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dagkit import Context, InputPort, Operator, OutputPort, StatelessPartitioner
from dagkit.api.running import Until
from dagkit.compiler import compile_application
from dagkit.engine.parts.reconfiguring import Reconfiguration
from dagkit.engine.parts.requests import (
    GiveUp,
    Reply,
    Request,
    RequestInbox,
    SetCount,
    SetValue,
    TapStream,
    ask,
    reply_to,
    withdraw,
)
from dagkit.engine.parts.run_part import Change
from dagkit.engine.parts.taps import LASTS, Taps
from dagkit.engine.program.facts import Changed, Scaled
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.engine.record.history import history
from dagkit.engine.run.loop import Loop
from dagkit.ledger.stores import MemoryStore, Store
from dagkit.ledger.stores.store import refused
from dagkit.testing import FakeClock
from dagkit.testing.crashes import Crash, CrashAfter
from dagkit_operators import FileSplitterInput, LineReader, RecordWriter
from tests.engine.cast import Collect, Desk, Digits, Draw, Ranges, Script, arrived
from tests.engine.parts.cast import chained


class Times(Operator):
    kind = "requests.times/1"
    input = InputPort(int)
    output = OutputPort(int)
    factor: int = 1
    password: str = ""
    also: Callable[[int], int] | None = None

    def process(self, item: int) -> None:
        if self.factor < 0:
            raise ValueError("nothing below zero")
        if self.also is not None:
            self.also(item)
        self.output.emit(item * self.factor)


class Delicate(Script):
    """A script that looks for nothing with a pause below zero."""

    kind = "requests.delicate/1"

    def emit_tuples(self) -> None:
        if self.pause_millis < 0:
            raise ValueError("nothing below zero")
        super().emit_tuples()


def never_called(item: int) -> int:
    pytest.fail(f"a request had it called with {item}")


def multiplied(looks: Sequence[tuple[int, ...]] = ((1,), (2,), (3,), (4,)), factor: int = 1) -> Draw:
    return chained({"script": Delicate(looks=tuple(looks)), "times": Times(factor=factor), "collect": Collect()})


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path, multiplied(), clock=FakeClock())


@dataclass
class Asking:
    """Asks when a window is committed, and lets the time pass in which the driver does not look for requests."""

    desk: Desk
    asks: dict[int, SetValue | SetCount]
    crash: Callable[[Point, int], None] = lambda *_: None
    asked: list[Request] = field(default_factory=list)

    def __call__(self, point: Point, window_id: int) -> None:
        if point is Point.FINISHED or point is Point.APPENDED:
            self.desk.clock.advance(seconds=2)
        if point is Point.APPENDED and window_id in self.asks:
            self.asked.append(ask(self.store, self.asks.pop(window_id), self.desk.clock.now()))
        self.crash(point, window_id)

    @property
    def store(self) -> Store:
        return self.desk.ledger().store

    def replies(self) -> list[Reply | None]:
        return [reply_to(self.store, request) for request in self.asked]


def asked(desk: Desk, asks: Mapping[int, Any], **given: Any) -> tuple[Loop, list[Reply | None]]:
    """The loop of a run with requests, and the replies to them."""
    asking = Asking(desk, dict(asks))
    return desk.run(probe=asking, **given), asking.replies()


def facts(desk: Desk) -> list[tuple[int, Any]]:
    return [(entry.checkpoint.window, fact) for entry in history(desk.ledger()) for fact in entry.checkpoint.facts]


def to(name: str, value: str, operator: str = "times") -> SetValue:
    return SetValue(operator=operator, name=name, value=value)


def times(value: str) -> SetValue:
    return to("factor", value)


def test_a_property_of_an_operator_on_the_workers_changes_with_the_next_window(desk):
    loop, (reply,) = asked(desk, {2: times("10")})
    assert arrived(loop) == [1, 2, 30, 40]
    assert (reply.done, reply.window, reply.before, reply.after) == (True, 3, 1, 10)
    ((window, fact),) = facts(desk)
    assert isinstance(fact, Changed)
    assert (window, fact.operator, fact.name, fact.before, fact.after) == (3, "times", "factor", 1, 10)
    assert desk.faults() == []


@pytest.mark.parametrize(
    ("edited", "rest"), [(1, [30, 40]), (5, [15, 20])], ids=["it outlives the run", "an edit wins"]
)
def test_what_was_set_outlives_the_run_until_the_configuration_is_edited(desk, edited, rest):
    asked(desk, {1: times("10")}, windows=2)
    desk.draw = multiplied(factor=edited)
    assert arrived(desk.run()) == [1, 20, *rest]


def test_what_is_asked_while_nothing_is_to_be_done_is_committed_with_a_window_of_its_own(tmp_path):
    desk = Desk(tmp_path, multiplied(looks=((1,),)), clock=FakeClock(), until=Until.IDLE)
    loop, (reply,) = asked(desk, {1: times("10")})
    assert (loop.checkpoint.window, reply.window) == (2, 2)


def test_nothing_is_asked_for_twice_when_a_run_was_killed_before_it_could_answer(desk):
    asking = Asking(desk, {1: times("10")}, CrashAfter(Point.APPENDED, 2))
    with pytest.raises(Crash, match="window 2"):
        desk.run(probe=asking)
    assert arrived(desk.run()) == [1, 20, 30, 40]
    (reply,) = asking.replies()
    assert (reply.done, reply.window) == (True, 2)
    assert len(facts(desk)) == 1


@pytest.mark.parametrize("point", [Point.PLANNED, Point.RUNNING, Point.STAGED])
def test_what_was_asked_and_not_committed_is_done_by_the_next_run(desk, point):
    asking = Asking(desk, {1: times("10")}, CrashAfter(point, 2))
    with pytest.raises(Crash, match="window 2"):
        desk.run(probe=asking)
    assert asking.replies() == [None]
    assert arrived(desk.run())[2:] == [30, 40]
    (reply,) = asking.replies()
    assert reply.done


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        (times("many"), "times.factor cannot be 'many'"),
        (to("faktor", "2"), "did you mean 'factor'?"),
        (to("factor", "2", operator="time"), "did you mean 'times'?"),
        (to("password", "open"), "times.password is a secret"),
        (to("password", "${env:NOT_THERE}"), "no variable 'NOT_THERE'"),
        (to("APPLICATION_WINDOW_COUNT", "2"), "cannot change while"),
        (to("PARTITIONER", "Nobody:3"), "Nobody"),
        (to("PARTITIONER", "subprocess.Popen:true"), "the module 'subprocess' is neither"),
        (to("PARTITIONER", "this.s:3"), "the module 'this' is neither"),
        (to("also", "os:system"), "a request may contain data only"),
        (to("also", f"{__name__}:never_called"), "a request may contain data only"),
        (to("factor..x", "2"), "times.factor..x"),
        (SetCount(operator="script", count=2), "runs once, on the driver"),
    ],
    ids=lambda each: "" if isinstance(each, str) else str(each.model_dump()),
)
def test_what_cannot_be_is_refused_as_a_property_file_would_be_and_the_run_goes_on(desk, asks, told):
    loop, (reply,) = asked(desk, {1: asks})
    assert not reply.done
    assert told in reply.refused
    assert "open" not in reply.refused
    assert arrived(loop) == [1, 2, 3, 4]
    assert facts(desk) == []


def test_a_secret_is_set_by_reference_and_stands_nowhere(desk, monkeypatch):
    monkeypatch.setenv("DOOR", "sesame-open-up")
    loop, (reply,) = asked(desk, {1: to("password", "${env:DOOR}")})
    assert not [path for path in Path(desk.place).rglob("*") if path.is_file() and b"sesame" in path.read_bytes()]
    assert reply.after == "${env:DOOR}"
    for each in (loop, desk.loop()):
        assert each.run_state.program.operators["times"][0].password == "sesame-open-up"  # noqa: S105


def test_a_count_is_set_by_hand(tmp_path):
    chain = {"ranges": Ranges(looks=((3,), (4,), (5,))), "digits": Digits(), "collect": Collect()}
    desk = Desk(tmp_path, chained(chain, digits=1), clock=FakeClock())
    loop, (reply,) = asked(desk, {1: SetCount(operator="digits", count=3)})
    assert sorted(arrived(loop)) == list(range(12))
    ((_, fact),) = facts(desk)
    assert isinstance(fact, Scaled)
    assert (fact.operator, fact.before, fact.after, fact.policy) == ("digits", 1, 3, "asked")
    assert (reply.before, reply.after) == (1, 3)


def test_an_attribute_that_may_change_does(desk):
    name = f"{StatelessPartitioner.__module__}.StatelessPartitioner:3"
    loop, replies = asked(desk, {1: to("PARTITIONER", name), 2: to("RECOVERY_ATTEMPTS", "7")})
    assert sorted(arrived(loop)) == [1, 2, 3, 4]
    assert len(loop.run_state.program.operators["times"]) == 3
    assert loop.run_state.program.contexts["times"].attributes["OperatorContext.RECOVERY_ATTEMPTS"] == 7
    assert all(reply.done for reply in replies)


def test_a_splitter_scans_at_once_when_its_trigger_is_set(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "first.txt").write_text("first\n")
    splitter = FileSplitterInput(scanner={"files": [str(tmp_path / "in")], "scan_interval_millis": 3_600_000})
    writer = RecordWriter(file_path=str(tmp_path / "out"))
    clock = FakeClock()
    began = clock.now()
    draw = chained({"splitter": splitter, "reader": LineReader(), "writer": writer})
    desk = Desk(tmp_path, draw, clock=clock, until=Until.STOPPED)
    asking = Asking(desk, {1: to("scanner.trigger", "true", operator="splitter")})

    def probe(point: Point, window_id: int) -> None:
        if (point, window_id) == (Point.APPENDED, 1):
            (tmp_path / "in" / "second.txt").write_text("second\n")
        asking(point, window_id)
        if point is Point.FINISHED and window_id > 1:  # the change itself takes a window while the scan runs beside it
            loop.stop()

    loop = desk.loop(probe=probe)
    loop.run()
    assert sorted(desk.outputs().values()) == [b"first\n", b"second\n"]
    assert (clock.now() - began).total_seconds() < 60


class Picky(Script):
    """Cannot be set up with every value that its class allows."""

    kind = "requests.picky/1"
    house: str = "here"

    def setup(self, context: Context) -> None:
        if self.house == "nowhere":
            raise ConnectionError("no such host")


def test_an_input_operator_that_cannot_begin_with_a_value_goes_on_with_the_one_before(tmp_path):
    draw = chained({"picky": Picky(looks=((1,), (2,), (3,))), "collect": Collect()})
    asks = {number: to("house", house, operator="picky") for number, house in ((1, "nowhere"), (2, "there"))}
    loop, (refused, done) = asked(Desk(tmp_path, draw, clock=FakeClock()), asks)
    assert arrived(loop) == [1, 2, 3]
    assert "no such host" in refused.refused
    assert (done.before, done.after) == ("here", "there")


class Clinging(Script):
    """Fails when it is torn down for the first time, and notes its life."""

    kind = "requests.clinging/1"
    house: str = "here"
    lived: ClassVar[list[str]] = []

    def setup(self, context: Context) -> None:
        self.lived.append(f"setup {self.house}")

    def emit_tuples(self) -> None:
        self.lived.append("look")
        super().emit_tuples()

    def teardown(self) -> None:
        self.lived.append("teardown")
        if self.lived.count("teardown") == 1:
            raise ConnectionError("the door is stuck")


def test_an_input_operator_that_fails_to_end_when_it_is_changed_is_set_up_again_as_it_was(tmp_path):
    Clinging.lived.clear()
    draw = chained({"clinging": Clinging(looks=((1,), (2,))), "collect": Collect()})
    loop, (reply,) = asked(Desk(tmp_path, draw, clock=FakeClock()), {1: to("house", "there", operator="clinging")})
    assert arrived(loop) == [1, 2]
    assert "the door is stuck" in reply.refused
    teardown = Clinging.lived.index("teardown")
    assert Clinging.lived[teardown : teardown + 3] == ["teardown", "setup here", "look"]


@pytest.mark.parametrize(
    "set_to", [times("-1"), to("pause_millis", "-1", operator="script")], ids=["on a worker", "on the driver"]
)
def test_a_value_that_an_operator_fails_with_is_not_set_again_by_the_next_run(desk, set_to):
    asking = Asking(desk, {1: set_to})
    with pytest.raises(OperatorFailed, match="nothing below zero"):
        desk.run(probe=asking)
    assert arrived(desk.run()) == [1, 2, 3, 4]
    (reply,) = asking.replies()
    assert "nothing below zero" in reply.refused
    assert facts(desk) == []


def test_a_request_that_was_withdrawn_is_not_done(desk):
    desk.run(windows=1)
    store = desk.ledger().store
    request = ask(store, times("10"), FakeClock().now())
    withdraw(store, request)
    assert arrived(desk.run()) == [1, 2, 3, 4]
    assert reply_to(store, request) is None


def test_a_request_that_is_withdrawn_after_a_window_has_begun_with_it_stays_done(desk):
    def withdrawing(point: Point, window_id: int) -> None:
        if (point, window_id) == (Point.RUNNING, 3):
            withdraw(asking.store, asking.asked[0])

    asking = Asking(desk, {2: times("10")}, withdrawing)
    assert arrived(desk.run(probe=asking)) == [1, 2, 30, 40]
    (reply,) = asking.replies()
    assert (reply.done, reply.window) == (True, 3)


@pytest.mark.parametrize("content", [b"no JSON", b"{}", b'{"format": "dagkit.request/2"}'])
def test_a_request_that_is_not_understood_is_answered_and_gone(desk, content):
    desk.run(windows=1)
    store = desk.ledger().store
    store.create("requests/strange.json", content)
    assert arrived(desk.run()) == [1, 2, 3, 4]
    assert store.names("requests") == []
    assert json.loads(store.get("answers/strange.json"))["done"] is False


def test_answers_that_were_not_fetched_go_after_a_day(desk):
    desk.run(windows=1)
    store = desk.ledger().store
    store.create("answers/old.json", b"{}")
    desk.clock.set_to(store.modified("answers/old.json"))
    desk.run(windows=1)
    assert store.names("answers") == ["old.json"]
    desk.clock.advance(seconds=86_401)
    desk.run(windows=1)
    assert store.names("answers") == []


def test_the_store_of_the_ledger_carries_requests_and_answers(store, clock, inbox):
    inbox.tidy()
    assert inbox.read_requests(0) == []
    request = ask(store, SetCount(operator="a", count=2), clock.now())
    assert inbox.read_requests(0) == []  # it is not a second since
    clock.advance(seconds=1)
    assert inbox.read_requests(0) == [request]
    clock.advance(seconds=1)
    assert inbox.read_requests(0) == []
    reply = Reply(id=request.id, done=True, window=1, before=1, after=2)
    inbox.reply(reply)
    assert store.names("requests") == []
    assert [reply_to(store, request), reply_to(store, request)] == [reply, None]


class Faltering(MemoryStore):
    """Refuses changes of the keys that contain a word."""

    refuses: Iterable[tuple[str, str]] = ()

    def get(self, key: str) -> bytes:
        self._falter("get", key)
        return super().get(key)

    def create(self, key: str, content: bytes) -> None:
        self._falter("create", key)
        super().create(key, content)

    def exists(self, key: str) -> bool:
        self._falter("exists", key)
        return super().exists(key)

    def names(self, folder: str) -> list[str]:
        self._falter("names", folder)
        return super().names(folder)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._falter("delete", key)
            super().delete([key])

    def _falter(self, done: str, key: str) -> None:
        if any(what == done and word in key for what, word in self.refuses):
            raise refused("the bucket", OSError(503, "Slow Down"))


@pytest.fixture
def store():
    return Faltering()


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def inbox(store, clock):
    return RequestInbox(store, clock.now)


def test_what_cannot_be_read_now_is_heard_later_and_nothing_is_heard_before_what_was_asked_first(store, clock, inbox):
    first, second, third = (ask(store, times(str(number)), clock.advance(seconds=1)) for number in range(3))
    store.refuses = {("get", second.id)}
    assert inbox.read_requests(0) == [first]
    clock.advance(seconds=1)
    assert inbox.read_requests(0) == []
    store.refuses = set()
    clock.advance(seconds=1)
    assert inbox.read_requests(0) == [second, third]
    clock.advance(seconds=1)
    assert inbox.read_requests(0) == []


def test_requests_that_are_answered_are_forgotten(store, clock, inbox):
    for number in range(20):
        request = ask(store, times(str(number)), clock.advance(seconds=1))
        assert inbox.read_requests(number) == [request]
        inbox.reply(Reply(id=request.id, done=True))
        assert inbox._known == {request.id}
    clock.advance(seconds=1)
    assert (inbox.read_requests(20), inbox._known) == ([], set())


def test_a_tap_lasts_a_minute_also_while_its_request_cannot_be_read(store, clock, inbox):
    taps = Taps(None, inbox, None)
    request = ask(store, TapStream(stream="times", most=1, every=1), clock.now())
    taps.add(request, request.asks, compile_application(multiplied()).graph, clock.now())
    store.refuses = {("exists", "requests")}
    clock.advance(seconds=LASTS.total_seconds())
    assert [tap.request for tap in taps.wanted(clock.now())] == [request.id]
    clock.advance(seconds=1)
    assert (taps.wanted(clock.now()), store.names("requests")) == ((), [])


@pytest.mark.parametrize("refuses", [("create", "answers"), ("delete", "requests")])
def test_what_cannot_be_answered_now_is_answered_later(store, clock, inbox, refuses):
    request = ask(store, times("10"), clock.now())
    assert inbox.read_requests(0) == [request]
    store.refuses = {refuses}
    reply = Reply(id=request.id, done=True, window=1)
    inbox.reply(reply)
    assert store.names("requests") == [f"{request.id}.json"]
    store.refuses = set()
    clock.advance(seconds=1)
    assert inbox.read_requests(1) == []
    assert (store.names("requests"), reply_to(store, request)) == ([], reply)
    clock.advance(seconds=1)
    assert inbox.read_requests(1) == []
    assert store.names("answers") == []


def test_answers_that_cannot_be_taken_away_now_do_not_stop_the_run(store, clock, inbox):
    store.create("answers/old.json", b"{}")
    store.refuses = {("names", "answers")}
    clock.set_to(datetime.now(UTC) + timedelta(days=2))
    inbox.tidy()
    store.refuses = set()
    inbox.tidy()
    assert store.names("answers") == []


def test_a_request_of_an_unknown_kind_is_refused_and_the_run_continues(tmp_path, store, clock, inbox):
    loop = Desk(tmp_path, multiplied()).loop()
    run, parts = loop.run_state, loop.parts
    taps = Taps(run, inbox, parts.inputs)
    changes = Reconfiguration(run, inbox, taps, parts.inputs, queue=parts.queue, operators=parts.operators)
    request = ask(store, times("10"), clock.now())
    changes.take_news()
    store.refuses = {("exists", "requests")}
    changes.perform(Change())
    assert loop.run_state.plan.altered == ()
    assert "Slow Down" in reply_to(store, request).refused


def test_a_request_on_work_that_cannot_be_read_now_is_refused_and_the_run_continues(tmp_path, store, clock, inbox):
    loop = Desk(tmp_path, multiplied()).loop()
    run, parts = loop.run_state, loop.parts
    taps = Taps(run, inbox, parts.inputs)
    changes = Reconfiguration(run, inbox, taps, parts.inputs, queue=parts.queue, operators=parts.operators)
    request = ask(store, GiveUp(by="ada"), clock.now())
    changes.take_news()
    store.refuses = {("exists", "requests")}
    changes.perform_on_work(lambda _: pytest.fail("it may have been withdrawn"))
    assert "Slow Down" in reply_to(store, request).refused
