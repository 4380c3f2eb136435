"""The HTTP interface: the page, its files, its events, and the answers under `/api/v1/`."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files as resources
from time import thread_time
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from dagkit.console import graph_answers, log_answers, operator_answers, work_answers
from dagkit.console.run_folder import RunFolder
from dagkit.console.status_answers import status_of
from dagkit.console.tables import MOST_KEPT, Asked, ChainRows, Row, page_of, table_of_windows
from dagkit.console.window_answers import (
    Series,
    blocks_in,
    compared,
    item_sums,
    items_of,
    launches,
    one_window,
    overview,
    table_of_all,
    window_of,
    window_of_block,
)
from dagkit.engine.parts.asking import answered
from dagkit.engine.parts.requests import (
    Asks,
    NotRunning,
    Refused,
    StopRun,
    TapStream,
    Unanswered,
    ask,
    is_id,
    reply_with,
)
from dagkit.engine.record.history import Window
from dagkit.errors import DagkitError
from dagkit.plan.configuration_lines import DEFAULT
from dagkit.plan.model import Plan
from dagkit.render.picture import View

LOOK_SECONDS = 1.0
"""The driver writes its status once a second."""
_STEP_SECONDS = 0.2
_ALIVE = ": alive\n\n"
"""A comment without an event: sending it shows whether the page is still there."""


MOST_ROWS = 500
_TAPS, _TAPPED, _TAP_SECONDS = 4, 10, 5.0
"""How many requests may wait for items, for how many of them, and for how long."""
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Interface:
    """Answers the requests about one application's folder."""

    def __init__(self, folder: RunFolder, closing: threading.Event, *, allows_control: bool) -> None:
        self._folder = folder
        self._closing = closing
        self._allows_control = allows_control
        self._series = Series(folder)
        self._drawings = graph_answers.Drawings()
        self._blocks: dict[str, ChainRows] = {}
        self._tapping = threading.BoundedSemaphore(_TAPS)
        self._windows = table_of_all(folder)
        self._items = table_of_windows(folder, items_of)
        self._splits = table_of_windows(folder, work_answers.splits)
        self._cuts = table_of_windows(folder, work_answers.cuts)
        self._files = work_answers.Files(folder)

    def routes(self) -> list[Route]:
        """The routes below `/api/v1`."""
        folder = self._folder
        of_windows: Mapping[str, Callable[[Window], Iterable[Row]]] = {
            "decisions": work_answers.decisions,
            "given-up": work_answers.given_up,
        }
        tables: Mapping[str, Callable[[Request], Iterable[Row]]] = {
            "operators": self._operators,
            "rejected": lambda _: [] if (run := folder.run()) is None else operator_answers.rejected(run.snapshot),
            "work": lambda _: work_answers.work(folder),
            "chains": self._chains,
            "keys": lambda _: () if (launched := folder.launched()) is None else launched.configuration,
            "values": self._values,
            "log": lambda request: log_answers.log(
                folder,
                request.query_params.get("least", ""),
                of_windows=request.query_params.get("windows") != "no",
            ),
            "places": lambda request: graph_answers.places(self._plan(), _view(request)[0]),
        }
        return [
            self._route("overview", lambda _: overview(folder, allows_control=self._allows_control)),
            *(self._route(name, partial(_newest, table_of_windows(folder, rows))) for name, rows in of_windows.items()),
            *(self._route(name, partial(_table, rows)) for name, rows in tables.items()),
            self._route("windows/{window:int}", self._window),
            self._route("windows", partial(_newest, self._windows)),
            self._route("launches", partial(_sums, self._windows, launches)),
            self._route("items/sums", partial(_sums, self._items, item_sums)),
            self._route("splits", partial(_newest, self._cuts)),
            self._route("splits/sums", partial(_sums, self._splits, self._split_sums)),
            self._route("compare", self._compare),
            self._route("items", self._items_of),
            self._route("series", lambda _: self._series.answer()),
            self._route("blocks", self._blocks_of),
            self._route("files", lambda request: self._files.page(_asked(request))),
            self._route("file", lambda request: work_answers.one_file(folder, request.query_params.get("path", ""))),
            self._route("graph", lambda request: graph_answers.document(self._plan(), *_view(request))),
            self._route("operator", self._operator),
            Route("/graph.svg", self._svg),
            Route("/events", self._events),
            Route("/stop", self._stop, methods=["POST"]),
            Route("/retry", self._retry, methods=["POST"]),
            Route("/answer", self._answer, methods=["POST"]),
            Route("/tap", self._tap, methods=["POST"]),
        ]

    def _route(self, name: str, answer: Callable[[Request], Row]) -> Route:
        schema = f"dagkit.console.{name.partition('/')[0]}/1"

        def respond(request: Request) -> Response:
            began = thread_time()
            response = JSONResponse({"schema": schema, **answer(request)})
            # The page asks again after a time that is a multiple of this one.
            response.headers["Server-Timing"] = f"cpu;dur={1000 * (thread_time() - began):.1f}"
            return response

        return Route(f"/{name}", respond)

    def _window(self, request: Request) -> Row:
        number = request.path_params["window"]
        window = one_window(self._folder, number)
        if window is None:
            raise HTTPException(404, f"the ledger has no window {number}")
        return window

    def _split_sums(self, rows: Iterable[Row]) -> list[Row]:
        return work_answers.split_sums(rows, self._folder.units())

    def _items_of(self, request: Request) -> Row:
        if "window" not in request.query_params:
            return self._items.page(_asked(request))
        return page_of(items_of(self._window_in(request, "window")), _asked(request))

    def _compare(self, request: Request) -> Row:
        first, second = self._window_in(request, "first"), self._window_in(request, "second")
        return page_of(compared(first, second), _asked(request))

    def _window_in(self, request: Request, name: str) -> Window:
        number = _number(request, name, None)
        with self._folder.windows() as chain:
            window = None if chain is None or number is None else window_of(chain, number)
        if window is None:
            raise HTTPException(404, f"the ledger has no window {number}")
        return window

    def _blocks_of(self, request: Request) -> Row:
        name = request.query_params.get("chain", "")
        with self._folder.ledger() as ledger:
            if ledger is None or name not in ledger.names():
                raise HTTPException(404, f"the ledger has no chain {name!r}")
        table = self._blocks.setdefault(name, ChainRows(partial(self._folder.chain, name), blocks_in))
        page = table.page(_asked(request))
        with self._folder.ledger() as ledger:
            assert ledger is not None, "it has had a chain"
            page["rows"] = [{**row, "window": window_of_block(ledger, name, row)} for row in page["rows"]]
        return {"chain": name, **page}

    def _chains(self, _: Request) -> list[Row]:
        with self._folder.ledger() as ledger:
            chains = [] if ledger is None else map(ledger.chain, ledger.names())
            return [{**chain.summary(), "head": chain.head.hash} for chain in chains]

    def _operators(self, request: Request) -> Iterable[Row]:
        names, run = request.query_params.getlist("name"), self._folder.run()
        rows = () if run is None else operator_answers.operators(run.snapshot)
        return [row for row in rows if not names or row["name"] in names]

    def _values(self, request: Request) -> Iterable[Row]:
        launched = self._folder.launched()
        rows = () if launched is None else operator_answers.values(launched)
        return [row for row in rows if "defaults" in request.query_params or row["origin"] != DEFAULT]

    def _operator(self, request: Request) -> Row:
        name = request.query_params.get("name", "")
        operator = operator_answers.operator_of(self._plan(), name)
        if operator is None:
            raise HTTPException(404, f"the plan has no operator {name!r}")
        return operator

    def _stop(self, _: Request) -> Response:
        return self._control("stop", self._stop_request)

    def _stop_request(self) -> StopRun:
        """The request to stop the running driver after the windows in flight; refuse it if none runs."""
        run = self._folder.run()
        if run is None or not run.runs:
            raise HTTPException(409, "the application is not running")
        return StopRun(launch=run.launch.id)

    def _retry(self, request: Request) -> Response:
        return self._control("retry", lambda: work_answers.retry_of(request.query_params))

    def _control(self, name: str, asks: Callable[[], Asks]) -> Response:
        """Leave a request for the driver, and do not wait; refuse it unless control is allowed."""
        self._check_control()
        wanted = asks()
        with self._folder.ledger() as ledger:
            if ledger is None:
                raise HTTPException(409, "the application was never launched")
            asked = ask(ledger.store, wanted, datetime.now(UTC))
        return JSONResponse({"schema": f"dagkit.console.{name}/1", "request": asked.id}, status_code=202)

    def _answer(self, request: Request) -> Response:
        """Take the answer of the driver to a request that was left; `done` is null until there is one."""
        self._check_control()
        request_id = request.query_params.get("request", "")
        if not is_id(request_id):
            raise HTTPException(404, "there is no such request")
        with self._folder.ledger() as ledger:
            reply = None if ledger is None else reply_with(ledger.store, request_id)
        answer = (
            {"done": None} if reply is None else reply.model_dump(mode="json", include={"done", "window", "refused"})
        )
        return JSONResponse({"schema": "dagkit.console.answer/1", **answer})

    def _check_control(self) -> None:
        if not self._allows_control:
            raise HTTPException(403, "this console may not control the run: serve it with --allow-control")

    def _tap(self, request: Request) -> Response:
        """Wait for items of a stream. The thread of the request waits, so only a few may."""
        if not self._tapping.acquire(blocking=False):
            raise HTTPException(409, "other pages show items of streams already")
        try:
            stream = request.query_params.get("stream", "")
            reply = answered(self._folder.place, TapStream(stream=stream, most=_TAPPED, every=1), _TAP_SECONDS)
            items, window = reply.model_dump(mode="json")["items"] if reply.items else [], reply.window
        except (NotRunning, Refused) as refused:
            raise HTTPException(409, f"{refused.problem}: {refused.help}") from refused
        except Unanswered:
            items, window = [], None
        finally:
            self._tapping.release()
        return JSONResponse({"schema": "dagkit.console.tap/1", "window": window, "rows": items})

    async def _events(self, request: Request) -> Response:
        """Send the status at once, then whenever the driver has written another one, and when the server closes.

        A driver that serves its own console writes how it ended before its server closes.
        """
        return StreamingResponse(self._live_events(request), media_type="text/event-stream")

    async def _live_events(self, request: Request) -> AsyncIterator[str]:
        sent = ""
        while not await request.is_disconnected():
            # Before the status is read: then the last event has all that the driver wrote before its server closed.
            is_last = self._closing.is_set()
            status = await run_in_threadpool(lambda: json.dumps(status_of(self._folder.run())))
            yield f"event: status\ndata: {status}\n\n" if status != sent else _ALIVE
            sent = status
            if is_last:
                return
            # in steps: a driver ends only after its console, and must not wait for a second
            for _ in range(round(LOOK_SECONDS / _STEP_SECONDS)):
                if not self._closing.is_set():
                    await asyncio.sleep(_STEP_SECONDS)

    def _svg(self, request: Request) -> Response:
        # in per cent, so that pages of nearly one size share a drawing
        shape = _number(request, "shape", None)
        page = None if not shape else shape / 100
        return Response(self._drawings.svg(self._plan(), *_view(request), page), media_type="image/svg+xml")

    def _plan(self) -> Plan:
        launched = self._folder.launched()
        if launched is None:
            raise HTTPException(404, "the folder does not record the plan of a launch")
        return launched.plan


def interface(folder: RunFolder, closing: threading.Event, *, allows_control: bool) -> Starlette:
    """The ASGI application for one folder; its endless answers end when `closing` is set."""
    answers = Interface(folder, closing, allows_control=allows_control)
    return Starlette(
        routes=[
            Route("/", partial(static, "console.html")),
            Mount("/api/v1", routes=answers.routes()),
            *static_routes(),
        ],
        exception_handlers=HANDLERS,
    )


def static_routes() -> list[Route]:
    """The routes of the files of the page."""
    names = [entry.name for entry in _folder().iterdir() if f".{entry.name.rpartition('.')[2]}" in _TYPES]
    return [Route(f"/static/{name}", partial(static, name)) for name in names]


def _folder() -> Any:
    return resources("dagkit.console").joinpath("static")


def static(name: str, _: Request) -> Response:
    """Answer with a file of the page."""
    content = _folder().joinpath(name).read_bytes()
    return Response(content, media_type=_TYPES[f".{name.rpartition('.')[2]}"])


def _newest(table: ChainRows, request: Request) -> Row:
    return table.page(_asked(request))


def _sums(table: ChainRows, sums: Callable[[Iterable[Row]], list[Row]], request: Request) -> Row:
    """A table of sums over the windows that could be read so far."""
    # All rows that are kept: a page of windows would not have all that belong to one sum.
    whole = table.page(Asked(limit=MOST_KEPT))
    page = page_of(sums(whole["rows"]), _asked(request))
    return {**page, **{name: whole[name] for name in ("looked", "continues")}}


def _table(rows: Callable[[Request], Iterable[Row]], request: Request) -> Row:
    return page_of(rows(request), _asked(request))


def _asked(request: Request) -> Asked:
    limit = min(MOST_ROWS, max(1, _number(request, "limit", 50) or 50))
    query = request.query_params
    return Asked(query.get("like", ""), query.get("sort", ""), _number(request, "after", 0) or 0, limit)


def _number(request: Request, name: str, default: int | None) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isdecimal():
        raise HTTPException(400, f"{name}={text} is no number")
    return int(text)


def _view(request: Request) -> tuple[View, list[str]]:
    view = request.query_params.get("view", View.LOGICAL)
    if view not in set(View):
        raise HTTPException(400, f"view={view} is not {' or '.join(View)}")
    return View(view), request.query_params.getlist("open")


def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, DagkitError), "only errors of dagkit come here"
    explained = error.explained
    body = {"problem": str(error)} if explained is None else {"code": explained.code, "problem": explained.problem}
    return JSONResponse({**body, "help": explained.help if explained is not None else ""}, status_code=500)


def _missing(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "only HTTP exceptions come here"
    return JSONResponse({"problem": error.detail}, status_code=error.status_code, headers=error.headers)


HANDLERS = {DagkitError: _failed, HTTPException: _missing}
"""Make the answers to failed requests."""
