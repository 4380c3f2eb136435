"""What is asked of a running application takes effect between two windows, or is refused in words; and it stays."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import obstore
import pytest

from dagkit import Config, Context, Dag, InputPort, Operator, OperatorContext, OutputPort, StatelessPartitioner
from dagkit.api.running import Until
from dagkit.compiler import compile_application
from dagkit.engine.changes.reconfiguration import Reconfiguration
from dagkit.engine.changes.requests import (
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
from dagkit.engine.changes.running_plan import RunningPlan
from dagkit.engine.changes.taps import Taps
from dagkit.engine.facts import Changed, Scaled
from dagkit.engine.failures import OperatorFailed
from dagkit.engine.history.history import history
from dagkit.engine.points import Point
from dagkit.engine.run.loop import Loop
from dagkit.ledger import Ledger
from dagkit.ledger.stores import LocalStore, MemoryStore, Store, open_store
from dagkit.ledger.stores.bucket import BucketStore
from dagkit.ledger.stores.store import refused
from dagkit.testing import FakeClock
from dagkit.testing.crashes import Crash, CrashAfter
from dagkit_operators import FileSplitterInput, LineReader, RecordWriter
from tests.engine.cast import Collect, Desk, Digits, Draw, Ranges, Script, arrived


class Times(Operator):
    """Hands on so many times as much."""

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
    def draw(dag: Dag, conf: object) -> None:
        times = dag.add_operator("times", Times(factor=factor))
        dag.add_operator("script", Delicate(looks=tuple(looks))) >> times
        times >> dag.add_operator("collect", Collect())

    return draw


@dataclass
class Asking:
    """Asks when a window is committed, and lets the time pass in which the driver does not look for requests."""

    desk: Desk
    asks: dict[int, SetValue | SetCount]
    asked: list[Request] = field(default_factory=list)

    def __call__(self, point: Point, window_id: int) -> None:
        assert self.desk.clock is not None
        if point is Point.FINISHED or point is Point.APPENDED:
            self.desk.clock.advance(seconds=2)
        if point is Point.APPENDED and window_id in self.asks:
            self.asked.append(ask(self.store, self.asks.pop(window_id), self.desk.clock.now()))

    @property
    def store(self) -> Store:
        return self.desk.ledger().store

    def replies(self) -> list[Reply | None]:
        return [reply_to(self.store, request) for request in self.asked]


def facts(desk: Desk) -> list[tuple[int, Any]]:
    return [(entry.checkpoint.window, fact) for entry in history(desk.ledger()) for fact in entry.checkpoint.facts]


def times(value: str) -> SetValue:
    return SetValue(operator="times", name="factor", value=value)


def test_a_property_of_an_operator_on_the_workers_changes_with_the_next_window(tmp_path):
    desk = Desk(tmp_path, multiplied(), clock=FakeClock())
    asking = Asking(desk, {2: times("10")})
    loop = desk.run(probe=asking)
    assert arrived(loop) == [1, 2, 30, 40]
    (reply,) = asking.replies()
    assert reply is not None
    assert (reply.done, reply.window, reply.before, reply.after) == (True, 3, 1, 10)
    ((window, fact),) = facts(desk)
    assert isinstance(fact, Changed)
    assert (window, fact.operator, fact.name, fact.before, fact.after) == (3, "times", "factor", 1, 10)
    assert desk.faults() == []


def test_what_was_set_outlives_the_run(tmp_path):
    desk = Desk(tmp_path, multiplied(), clock=FakeClock())
    desk.run(probe=Asking(desk, {1: times("10")}), windows=2)
    assert arrived(desk.run()) == [1, 20, 30, 40]


def test_configuration_edited_after_a_property_was_set_wins(tmp_path):
    desk = Desk(tmp_path, multiplied(), clock=FakeClock())
    desk.run(probe=Asking(desk, {1: times("10")}), windows=2)
    desk.draw = multiplied(factor=5)
    assert arrived(desk.run()) == [1, 20, 15, 20]


def test_what_is_asked_while_nothing_is_to_be_done_is_committed_with_a_window_of_its_own(tmp_path):
    desk = Desk(tmp_path, multiplied(looks=((1,),)), clock=FakeClock(), until=Until.IDLE)
    asking = Asking(desk, {1: times("10")})
    loop = desk.run(probe=asking)
    assert loop.checkpoint.window == 2
    (reply,) = asking.replies()
    assert reply is not None
    assert reply.window == 2


def test_nothing_is_asked_for_twice_when_a_run_was_killed_before_it_could_answer(tmp_path):
    desk = Desk(tmp_path, multiplied(), clock=FakeClock())
    asking = Asking(desk, {1: times("10")})

    def probe(point: Point, window_id: int) -> None:
        asking(point, window_id)
        CrashAfter(Point.APPENDED, 2)(point, window_id)

    with pytest.raises(Crash, match="window 2"):
        desk.run(probe=probe)
    assert arrived(desk.run()) == [1, 20, 30, 40]
    (reply,) = asking.replies()
    assert reply is not None
    assert (reply.done, reply.window) == (True, 2)
    assert len(facts(desk)) == 1


@pytest.mark.parametrize("point", [Point.PLANNED, Point.RUNNING, Point.STAGED])
def test_what_was_asked_and_not_committed_is_done_by_the_next_run(tmp_path, point):
    desk = Desk(tmp_path, multiplied(), clock=FakeClock())
    asking = Asking(desk, {1: times("10")})

    def probe(at: Point, window_id: int) -> None:
        asking(at, window_id)
        CrashAfter(point, 2)(at, window_id)

    with pytest.raises(Crash, match="window 2"):
        desk.run(probe=probe)
    assert asking.replies() == [None]
    assert arrived(desk.run())[2:] == [30, 40]
    (reply,) = asking.replies()
    assert reply is not None
    assert reply.done


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        (times("many"), "times.factor cannot be 'many'"),
        (SetValue(operator="times", name="faktor", value="2"), "did you mean 'factor'?"),
        (SetValue(operator="time", name="factor", value="2"), "did you mean 'times'?"),
        (SetValue(operator="times", name="password", value="open"), "times.password is a secret"),
        (SetValue(operator="times", name="password", value="${env:NOT_THERE}"), "no variable 'NOT_THERE'"),
        (SetValue(operator="times", name="APPLICATION_WINDOW_COUNT", value="2"), "cannot change while"),
        (SetValue(operator="times", name="PARTITIONER", value="Nobody:3"), "Nobody"),
        (
            SetValue(operator="times", name="PARTITIONER", value="subprocess.Popen:true"),
            "the module 'subprocess' is neither",
        ),
        (SetValue(operator="times", name="PARTITIONER", value="this.s:3"), "the module 'this' is neither"),
        (SetValue(operator="times", name="also", value="os:system"), "a request may contain data only"),
        (
            SetValue(operator="times", name="also", value=f"{__name__}:never_called"),
            "a request may contain data only",
        ),
        (SetValue(operator="times", name="factor..x", value="2"), "times.factor..x"),
        (SetCount(operator="script", count=2), "runs once, on the driver"),
    ],
    ids=lambda each: "" if isinstance(each, str) else str(each.model_dump()),
)
def test_what_cannot_be_is_refused_as_a_property_file_would_be_and_the_run_goes_on(tmp_path, asks, told):
    desk = Desk(tmp_path, multiplied(), clock=FakeClock())
    asking = Asking(desk, {1: asks})
    loop = desk.run(probe=asking)
    (reply,) = asking.replies()
    assert reply is not None
    assert not reply.done
    assert reply.refused is not None
    assert told in reply.refused
    assert "open" not in reply.refused
    assert arrived(loop) == [1, 2, 3, 4]
    assert facts(desk) == []


def test_a_secret_is_set_by_reference_and_stands_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("DOOR", "sesame-open-up")
    desk = Desk(tmp_path, multiplied(), clock=FakeClock())
    asking = Asking(desk, {1: SetValue(operator="times", name="password", value="${env:DOOR}")})
    loop = desk.run(probe=asking)
    assert loop.run_state.program.operators["times"][0].password == "sesame-open-up"  # type: ignore[attr-defined] # noqa: S105
    assert not [path for path in Path(desk.place).rglob("*") if path.is_file() and b"sesame" in path.read_bytes()]
    (reply,) = asking.replies()
    assert reply is not None
    assert reply.after == "${env:DOOR}"
    assert desk.loop().run_state.program.operators["times"][0].password == "sesame-open-up"  # type: ignore[attr-defined] # noqa: S105


def test_a_count_is_set_by_hand(tmp_path):
    def draw(dag: Dag, conf: object) -> None:
        digits = dag.add_operator("digits", Digits())
        dag.set_operator_attribute(digits, OperatorContext.PARTITIONER, StatelessPartitioner(1))
        dag.add_operator("ranges", Ranges(looks=((3,), (4,), (5,)))) >> digits >> dag.add_operator("collect", Collect())

    desk = Desk(tmp_path, draw, clock=FakeClock())
    asking = Asking(desk, {1: SetCount(operator="digits", count=3)})
    loop = desk.run(probe=asking)
    assert sorted(arrived(loop)) == list(range(12))
    ((_, fact),) = facts(desk)
    assert isinstance(fact, Scaled)
    assert (fact.operator, fact.before, fact.after, fact.policy) == ("digits", 1, 3, "asked")
    (reply,) = asking.replies()
    assert reply is not None
    assert (reply.before, reply.after) == (1, 3)


def test_an_attribute_that_may_change_does(tmp_path):
    desk = Desk(tmp_path, multiplied(), clock=FakeClock())
    name = f"{StatelessPartitioner.__module__}.StatelessPartitioner:3"
    asking = Asking(
        desk,
        {
            1: SetValue(operator="times", name="PARTITIONER", value=name),
            2: SetValue(operator="times", name="RECOVERY_ATTEMPTS", value="7"),
        },
    )
    loop = desk.run(probe=asking)
    assert sorted(arrived(loop)) == [1, 2, 3, 4]
    assert len(loop.run_state.program.operators["times"]) == 3
    assert loop.run_state.program.attributes["times"]["OperatorContext.RECOVERY_ATTEMPTS"] == 7
    assert all(reply is not None and reply.done for reply in asking.replies())


def test_a_splitter_scans_at_once_when_its_trigger_is_set(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "first.txt").write_text("first\n")

    def draw(dag: Dag, conf: object) -> None:
        scanner = {"files": [str(tmp_path / "in")], "scan_interval_millis": 3_600_000}
        splitter = dag.add_operator("splitter", FileSplitterInput(scanner=scanner))
        reader = dag.add_operator("reader", LineReader())
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        writer = dag.add_operator("writer", RecordWriter(file_path=str(tmp_path / "out")))
        dag.add_stream("lines", reader.messages, writer.input)

    clock = FakeClock()
    began = clock.now()
    desk = Desk(tmp_path, draw, clock=clock, until=Until.STOPPED)
    trigger = SetValue(operator="splitter", name="scanner.trigger", value="true")
    asking = Asking(desk, {1: trigger})

    def probe(point: Point, window_id: int) -> None:
        if (point, window_id) == (Point.APPENDED, 1):
            (tmp_path / "in" / "second.txt").write_text("second\n")
        asking(point, window_id)
        if point is Point.FINISHED and window_id > 1:  # the change itself takes a window while the scan runs beside it
            loop.stop()

    loop: Loop = desk.loop(probe=probe)
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
    def draw(dag: Dag, conf: object) -> None:
        dag.add_operator("picky", Picky(looks=((1,), (2,), (3,)))) >> dag.add_operator("collect", Collect())

    desk = Desk(tmp_path, draw, clock=FakeClock())
    asks = {1: SetValue(operator="picky", name="house", value="nowhere")}
    asking = Asking(desk, {**asks, 2: SetValue(operator="picky", name="house", value="there")})
    loop = desk.run(probe=asking)
    assert arrived(loop) == [1, 2, 3]
    refused, done = asking.replies()
    assert refused is not None
    assert done is not None
    assert "no such host" in (refused.refused or "")
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
    def draw(dag: Dag, conf: object) -> None:
        dag.add_operator("clinging", Clinging(looks=((1,), (2,)))) >> dag.add_operator("collect", Collect())

    Clinging.lived.clear()
    desk = Desk(tmp_path, draw, clock=FakeClock())
    asking = Asking(desk, {1: SetValue(operator="clinging", name="house", value="there")})
    assert arrived(desk.run(probe=asking)) == [1, 2]
    (reply,) = asking.replies()
    assert reply is not None
    assert "the door is stuck" in (reply.refused or "")
    teardown = Clinging.lived.index("teardown")
    assert Clinging.lived[teardown : teardown + 3] == ["teardown", "setup here", "look"]


def test_a_request_that_was_withdrawn_is_not_done(tmp_path):
    desk = Desk(tmp_path, multiplied(), clock=FakeClock())
    desk.run(windows=1)
    store = Ledger.open(desk.place).store
    request = ask(store, times("10"), FakeClock().now())
    withdraw(store, request)
    assert arrived(desk.run()) == [1, 2, 3, 4]
    assert reply_to(store, request) is None


@pytest.mark.parametrize("content", [b"no JSON", b"{}", b'{"format": "dagkit.request/2"}'])
def test_a_request_that_is_not_understood_is_answered_and_gone(tmp_path, content):
    desk = Desk(tmp_path, multiplied(), clock=FakeClock())
    desk.run(windows=1)
    store = Ledger.open(desk.place).store
    store.create("requests/strange.json", content)
    assert arrived(desk.run()) == [1, 2, 3, 4]
    assert store.names("requests") == []
    assert json.loads(store.get("answers/strange.json"))["done"] is False


def test_answers_that_were_not_fetched_go_after_a_day(tmp_path):
    clock = FakeClock()
    desk = Desk(tmp_path, multiplied(), clock=clock)
    desk.run(windows=1)
    store = Ledger.open(desk.place).store
    store.create("answers/old.json", b"{}")
    modified = store.modified("answers/old.json")
    assert modified is not None
    clock.set_to(modified)
    desk.run(windows=1)
    assert store.names("answers") == ["old.json"]
    clock.advance(seconds=86_401)
    desk.run(windows=1)
    assert store.names("answers") == []


def memory_store(_: Path) -> Store:
    return MemoryStore()


def in_memory_of_fsspec(folder: Path) -> Store:
    return open_store(f"memory://{folder.name}")


def in_a_bucket(_: Path) -> Store:
    return BucketStore(obstore.store.MemoryStore(), "bucket")


@pytest.mark.parametrize("place", [memory_store, LocalStore, in_memory_of_fsspec, in_a_bucket])
def test_whatever_keeps_a_ledger_carries_requests_and_answers(tmp_path, place):
    store, clock = place(tmp_path), FakeClock()
    inbox = RequestInbox(store, clock.now)
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

    def __init__(self) -> None:
        super().__init__()
        self.refuses: set[tuple[str, str]] = set()

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


def test_what_cannot_be_read_now_is_heard_later_and_nothing_is_heard_before_what_was_asked_first():
    store, clock = Faltering(), FakeClock()
    inbox = RequestInbox(store, clock.now)
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


def test_a_tap_lasts_while_its_request_cannot_be_read():
    store, clock = Faltering(), FakeClock()
    taps = Taps(RequestInbox(store, clock.now))
    request = ask(store, TapStream(stream="times", most=1, every=1), clock.now())
    assert isinstance(request.asks, TapStream)
    taps.add(request, request.asks, compile_application(multiplied()).graph)
    store.refuses = {("exists", "requests")}
    assert [tap.request for tap in taps.wanted(clock.now())] == [request.id]


@pytest.mark.parametrize("refuses", [("create", "answers"), ("delete", "requests")])
def test_what_cannot_be_answered_now_is_answered_later(refuses):
    store, clock = Faltering(), FakeClock()
    inbox = RequestInbox(store, clock.now)
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


def test_answers_that_cannot_be_taken_away_now_do_not_stop_the_run():
    store, clock = Faltering(), FakeClock()
    store.create("answers/old.json", b"{}")
    store.refuses = {("names", "answers")}
    clock.set_to(datetime.now(UTC) + timedelta(days=2))
    RequestInbox(store, clock.now).tidy()
    store.refuses = set()
    RequestInbox(store, clock.now).tidy()
    assert store.names("answers") == []


def test_a_request_of_an_unknown_kind_is_refused_and_the_run_continues():
    store, clock = Faltering(), FakeClock()
    changing = Reconfiguration(
        RunningPlan.of(compile_application(multiplied(), Config.of({}))), RequestInbox(store, clock.now)
    )
    request = ask(store, times("10"), clock.now())
    changing.read_requests(0)
    store.refuses = {("exists", "requests")}
    assert changing.perform(lambda _: None, clock.now()) == []
    reply = reply_to(store, request)
    assert reply is not None
    assert "Slow Down" in (reply.refused or "")


@pytest.mark.parametrize(
    "set_to",
    [times("-1"), SetValue(operator="script", name="pause_millis", value="-1")],
    ids=["on a worker", "on the driver"],
)
def test_a_value_that_an_operator_fails_with_is_not_set_again_by_the_next_run(tmp_path, set_to):
    desk = Desk(tmp_path, multiplied(), clock=FakeClock())
    asking = Asking(desk, {1: set_to})
    with pytest.raises(OperatorFailed, match="nothing below zero"):
        desk.run(probe=asking)
    assert arrived(desk.run()) == [1, 2, 3, 4]
    (reply,) = asking.replies()
    assert reply is not None
    assert reply.refused is not None
    assert "nothing below zero" in reply.refused
    assert facts(desk) == []
