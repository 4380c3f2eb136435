"""A source and a sink of a server of HTTP, each in one class, between which no item is lost or doubled."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from pydantic import PrivateAttr

from dagkit import Unavailable, Until
from dagkit.engine.program.points import Point
from dagkit.errors import RunFailure
from dagkit.testing import CrashAfter, FakeClock, Rehearsal
from dagkit_operators import Delivery, Items, Map, OnceSink, PagedSource
from dagkit_operators.connectors.answers import answered
from tests.engine.cast import Desk, chain

PAGE = 3


@dataclass(frozen=True)
class Order:
    number: int


class Server(ThreadingHTTPServer):
    """Lists numbered orders page by page, and accepts posts, of one idempotency key once. It may answer with faults."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.orders = list(range(10))
        self.posts: dict[str, list[Any]] = {}
        self.repeated = 0
        self.faults: list[int] = []
        """The statuses of the next answers; 0: the connection is cut, 1: within the answer; 200 is none."""


class Answers(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        after = int(self.path.partition("=")[2] or 0)
        self.answer(self.server.orders[after : after + PAGE])

    def do_POST(self):
        key, body = self.headers["Idempotency-Key"], self.rfile.read(int(self.headers["Content-Length"]))
        if not self.server.faults or self.server.faults[0] == 200:
            self.server.repeated += key in self.server.posts
            self.server.posts[key] = json.loads(body)
        self.answer({})

    def answer(self, value):
        status, self.server.faults = [*self.server.faults, 200][0], self.server.faults[1:]
        if not status:
            return
        self.send_response(max(200, status))
        self.send_header("Retry-After", "90")
        self.send_header("Content-Length", "1000" if status == 1 else str(len(json.dumps(value))))
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_):
        """Print nothing."""


def asked(request):
    with urlopen(request, timeout=10) as answer:  # noqa: S310 - the server of this test
        return json.load(answer)


class Orders(PagedSource[Order]):
    kind = "test.orders/1"
    url: str

    def read_page(self, cursor):
        numbers = asked(f"{self.url}/?after={cursor or 0}")
        return map(Order, numbers), (cursor or 0) + len(numbers)


class Posts(OnceSink[Order]):
    kind = "test.posts/1"
    url: str
    at_once: int = 4

    def write(self, delivery: Delivery[Order]) -> None:
        delivery.send_pieces(self.at_once, self.post)

    def post(self, key: str, orders: list[Order]) -> None:
        body = json.dumps([order.number for order in orders]).encode()
        asked(Request(self.url, body, {"Idempotency-Key": key}))  # noqa: S310 - as above


class Rows(OnceSink[Order]):
    """A table of SQLite, which records the last window of each writer."""

    kind = "test.rows/1"
    path: str

    def connect(self, writer: str) -> None:
        self._database = sqlite3.connect(self.path)
        self._database.execute("CREATE TABLE IF NOT EXISTS orders (number INTEGER)")
        self._database.execute("CREATE TABLE IF NOT EXISTS windows (writer PRIMARY KEY, window INTEGER)")

    def last_window(self, writer: str) -> int:
        return max(
            (row[0] for row in self._database.execute("SELECT window FROM windows WHERE writer=?", (writer,))),
            default=0,
        )

    def write(self, delivery: Delivery[Order]) -> None:
        with self._database:
            self._database.executemany("INSERT INTO orders VALUES (?)", ((order.number,) for order in delivery.items()))
            self._database.execute("REPLACE INTO windows VALUES (?, ?)", (delivery.writer, delivery.window_id))

    def disconnect(self) -> None:
        self._database.close()


@pytest.fixture
def server():
    with Server() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def url_of(server):
    return f"http://127.0.0.1:{server.server_address[1]}"


def desk_of(home, server, sink=Posts, **given):
    url = url_of(server)
    given = given or {"url": url}
    return Desk(home, chain(orders=Orders(url=url), sink=sink(**given)), until=Until.ONCE, clock=FakeClock())


def posted(server):
    return sorted(number for numbers in server.posts.values() for number in numbers)


def test_no_item_is_lost_between_the_streaming_windows_of_an_application_window(tmp_path, server):
    replace(desk_of(tmp_path, server), conf={"dt.operator.sink.attr.APPLICATION_WINDOW_COUNT": 2}).run()
    assert posted(server) == list(range(10))


@pytest.mark.parametrize("point", Point)
def test_a_crash_after_any_step_loses_and_doubles_no_item(tmp_path, server, point):
    desk = desk_of(tmp_path, server)
    desk.crash(CrashAfter(point, 1), CrashAfter(point, 2))
    desk.run()
    assert posted(server) == list(range(10))


@pytest.mark.parametrize("point", Point)
def test_a_system_with_transactions_gets_no_window_again_that_it_has_recorded(tmp_path, server, point):
    path = str(tmp_path / "orders.db")
    desk = desk_of(tmp_path, server, Rows, path=path)
    desk.crash(CrashAfter(point, 1), CrashAfter(point, 2))
    desk.run()
    with closing(sqlite3.connect(path)) as database:
        assert [row[0] for row in database.execute("SELECT number FROM orders ORDER BY number")] == list(range(10))


@pytest.mark.parametrize("fault", [0, 1, 429, 500, 503])
def test_a_server_that_does_not_answer_is_asked_again_when_it_asks_for_that(tmp_path, server, fault):
    server.faults = [fault, 200, 200, 200, 200, 200, fault]  # in the look at the first page, and in the first post
    desk = desk_of(tmp_path, server)
    began = desk.clock.now()
    desk.run()
    assert (posted(server), server.faults) == (list(range(10)), [])
    assert ((desk.clock.now() - began).total_seconds() >= 90) is (fault > 1)


def test_a_source_waits_for_its_server_for_so_long(tmp_path, server):
    server.faults = [503]
    desk = replace(desk_of(tmp_path, server), conf={"dt.operator.orders.prop.waits_seconds": 0})
    with pytest.raises(RunFailure, match="503"):
        desk.run()
    desk.run()
    assert posted(server) == list(range(10))


@pytest.mark.parametrize("served", [0, 5])
def test_an_answer_that_no_later_request_changes_ends_the_launch(tmp_path, server, served):
    server.faults = [200] * served + [404]
    with pytest.raises(RunFailure, match="HTTP Error 404"):
        desk_of(tmp_path, server).run()


def test_a_later_attempt_at_a_delivery_sends_only_the_pieces_that_were_not_sent(tmp_path, server):
    server.faults = [200] * 7 + [503]
    desk_of(tmp_path, server, url=url_of(server), at_once=1).run()
    assert (posted(server), server.faults, server.repeated) == (list(range(10)), [], 0)


class Busy(OnceSink[int]):
    """Posts to a server that refuses each tenth request."""

    kind = "test.busy/1"
    _requests: int = PrivateAttr(default=0)

    def write(self, delivery: Delivery[int]) -> None:
        delivery.send_pieces(1, self.post)

    def post(self, key: str, numbers: list[int]) -> None:
        self._requests += 1
        if self._requests % 10 == 0:
            raise Unavailable("busy")


def test_the_pauses_begin_again_after_a_piece_that_was_accepted(tmp_path, caplog):
    draw = chain(numbers=Items[int](items=tuple(range(100))), sink=Busy(waits_seconds=3))
    desk = Desk(tmp_path, draw, until=Until.ONCE, clock=FakeClock())
    began = desk.clock.now()
    desk.run()
    assert (desk.clock.now() - began).total_seconds() == 11 * 0.5  # each of the eleven pauses is the first one
    assert len(caplog.messages) == 2  # away, and back


def test_clients_of_other_libraries_raise_errors_of_connections_under_these_names():
    class ConnectionError(Exception): ...  # noqa: A001 - as redis has it

    class HTTPStatusError(Exception):  # as httpx has it
        response = SimpleNamespace(status_code=429, headers={"Retry-After": "7"})

    class FalseIfFailed(SimpleNamespace):  # as requests has it
        def __bool__(self):
            return self.status_code < 400

    class HTTPError(OSError):
        response = FalseIfFailed(status_code=503, headers={"Retry-After": "5"})

    def raised(error):
        with pytest.raises(type(error) if isinstance(error, ValueError) else Unavailable) as caught, answered():
            raise error
        return caught.value

    assert raised(ConnectionError("reset")).problem == "ConnectionError: reset"
    assert raised(HTTPStatusError("slow")).retry_after == 7
    assert raised(HTTPError("busy")).retry_after == 5
    assert raised(ValueError("no JSON")).args == ("no JSON",)
    with pytest.raises(URLError), answered():
        raise URLError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate has expired")


def test_a_later_launch_sends_only_what_is_new(tmp_path, server):
    desk_of(tmp_path, server).run()
    server.orders += [10, 11]
    desk_of(tmp_path, server).run()
    assert (posted(server), server.repeated) == (list(range(12)), 0)


class Sparse(PagedSource[int]):
    """A list of which most pages are empty."""

    kind = "test.sparse/1"

    def read_page(self, cursor):
        page = cursor or 0
        return ([page] if page % 50 == 49 else []), min(page + 1, 100)


class Wrong(PagedSource[int]):
    """Returns a cursor that does not move, or that begins again."""

    kind = "test.wrong/1"
    begins: bool

    def read_page(self, cursor):
        return [1], None if self.begins else 1


@pytest.mark.parametrize("begins", [True, False])
def test_a_cursor_that_would_repeat_items_is_refused(begins):
    with pytest.raises(RunFailure, match="so items would be sent again: return the cursor behind the last item"):
        Rehearsal(chain(wrong=Wrong(begins=begins), copy=Map[int, int](int))).run()


def test_the_pieces_of_a_delivery_are_named_by_their_places():
    window = SimpleNamespace(entries=lambda: iter([b"[1, 2, 3]", b"[4, 5]"]))
    assert list(Delivery("w", 7, window, None).pieces(2)) == [
        ("w-7-0-2", [1, 2]),
        ("w-7-2-4", [3, 4]),
        ("w-7-4-5", [5]),
    ]


def test_pages_without_items_are_passed_over(tmp_path):
    rehearsal = Rehearsal(chain(sparse=Sparse(), copy=Map[int, int](int), ends=Map[int, int](int)))
    rehearsal.run()
    assert [number for numbers in rehearsal.sent.values() for number in numbers] == [49, 99]
