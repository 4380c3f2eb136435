"""The HTTP interface: the page, its files, its events, and the answers under `/api/v1/`."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files as resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from dagkit.console import graph_answers, work_answers
from dagkit.console.run_folder import RunFolder, status_of
from dagkit.console.window_answers import Row, Series, blocks, one_window, overview, windows
from dagkit.engine.parts.requests import StopRun, ask
from dagkit.errors import DagkitError
from dagkit.plan.model import Plan
from dagkit.render.picture import View

LOOK_SECONDS = 1.0
"""The driver writes its status once a second."""
_STEP_SECONDS = 0.2
_ALIVE = ": alive\n\n"
"""A comment without an event: sending it shows whether the page is still there."""


def live_events(folder: RunFolder, closing: threading.Event, request: Request) -> StreamingResponse:
    """Send the status at once, then whenever the driver has written another one, the last time when the server closes.

    A driver that serves its own console writes how it ended before its server closes.
    """

    async def events() -> AsyncIterator[str]:
        sent = ""
        while not await request.is_disconnected():
            is_last = closing.is_set()
            status = await run_in_threadpool(_status_text, folder)
            yield f"event: status\ndata: {status}\n\n" if status != sent else _ALIVE
            sent = status
            if is_last:
                return
            for _ in range(round(LOOK_SECONDS / _STEP_SECONDS)):
                if not closing.is_set():
                    await asyncio.sleep(_STEP_SECONDS)

    return StreamingResponse(events(), media_type="text/event-stream")


def _status_text(folder: RunFolder) -> str:
    return json.dumps(status_of(folder.run()))


def request_stop(folder: RunFolder, *, allows_control: bool) -> Row:
    """Ask the running driver to stop after the windows in flight, and do not wait; refuse unless that is allowed."""
    if not allows_control:
        raise HTTPException(403, "this console may not control the run: serve it with --allow-control")
    run = folder.run()
    if run is None or not run.runs:
        raise HTTPException(409, "the application is not running")
    with folder.ledger() as ledger:
        assert ledger is not None, "a run that was seen has a ledger"
        asked = ask(ledger.store, StopRun(launch=run.snapshot.driver.launch), datetime.now(UTC))
    return {"request": asked.id}


MOST_ROWS = 500
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Interface:
    """Answers the requests about one application's folder."""

    def __init__(self, folder: RunFolder, closing: threading.Event, *, allows_control: bool) -> None:
        self._folder = folder
        self._closing = closing
        self._allows_control = allows_control
        self._series = Series(folder)
        self._drawings = graph_answers.Drawings()

    def routes(self) -> list[Route]:
        """The routes below `/api/v1`."""
        folder = self._folder
        paged: Mapping[str, Callable[..., Row]] = {
            "windows": windows,
            "decisions": work_answers.decisions,
            "splits": work_answers.splits,
            "items": work_answers.items,
            "given-up": work_answers.given_up,
        }
        return [
            self._route("overview", lambda _: overview(folder, allows_control=self._allows_control)),
            *(self._route(name, partial(_paged, folder, answer)) for name, answer in paged.items()),
            self._route("windows/{window:int}", self._window),
            self._route("series", lambda _: self._series.answer(folder.launched())),
            self._route("blocks", self._blocks),
            self._route("work", lambda _: work_answers.work(folder)),
            self._route("files", self._files),
            self._route("file", lambda request: work_answers.one_file(folder, request.query_params.get("path", ""))),
            self._route("configuration", self._configuration),
            self._route("graph", lambda request: graph_answers.document(self._plan(), *_view(request))),
            self._route("operator", self._operator),
            Route("/graph.svg", self._svg),
            Route("/events", self._events),
            Route("/stop", self._stop, methods=["POST"]),
        ]

    def _route(self, name: str, answer: Callable[[Request], Row]) -> Route:
        schema = f"dagkit.console.{name.partition('/')[0]}/1"

        def respond(request: Request) -> Response:
            return JSONResponse({"schema": schema, **answer(request)})

        return Route(f"/{name}", respond)

    def _window(self, request: Request) -> Row:
        found = one_window(self._folder, request.path_params["window"])
        if found is None:
            raise HTTPException(404, f"the ledger has no window {request.path_params['window']}")
        return found

    def _blocks(self, request: Request) -> Row:
        chain = request.query_params.get("chain", "")
        return blocks(self._folder, chain, _number(request, "before", None), _limit(request))

    def _files(self, request: Request) -> Row:
        after, limit = _number(request, "after", 0), _limit(request)
        return work_answers.files(self._folder, after or 0, limit, request.query_params.get("like", ""))

    def _configuration(self, _: Request) -> Row:
        launched = self._folder.launched()
        if launched is None:
            return {"entries": [], "operators": []}
        return {"entries": list(launched.configuration), "operators": graph_answers.values_of(launched)}

    def _operator(self, request: Request) -> Row:
        name = request.query_params.get("name", "")
        found = graph_answers.operator_of(self._plan(), name)
        if found is None:
            raise HTTPException(404, f"the plan has no operator {name!r}")
        return found

    def _stop(self, _: Request) -> Response:
        asked = request_stop(self._folder, allows_control=self._allows_control)
        return JSONResponse({"schema": "dagkit.console.stop/1", **asked}, status_code=202)

    async def _events(self, request: Request) -> Response:
        return live_events(self._folder, self._closing, request)

    def _svg(self, request: Request) -> Response:
        return Response(self._drawings.svg(self._plan(), *_view(request)), media_type="image/svg+xml")

    def _plan(self) -> Plan:
        launched = self._folder.launched()
        if launched is None:
            raise HTTPException(404, "the folder does not record the plan of a launch")
        return launched.plan


def interface(folder: RunFolder, closing: threading.Event, *, allows_control: bool) -> Starlette:
    """The ASGI application for one folder; its endless answers end when `closing` is set."""
    answers = Interface(folder, closing, allows_control=allows_control)
    return Starlette(
        routes=[Route("/", partial(_static, "console.html")), Mount("/api/v1", routes=answers.routes())]
        + [Route(f"/static/{name}", partial(_static, name)) for name in _names()],
        exception_handlers={DagkitError: _failed, HTTPException: _missing},
    )


def _names() -> list[str]:
    return [entry.name for entry in _folder().iterdir() if f".{entry.name.rpartition('.')[2]}" in _TYPES]


def _folder() -> Any:
    return resources("dagkit.console").joinpath("static")


def _static(name: str, _: Request) -> Response:
    content = _folder().joinpath(name).read_bytes()
    return Response(content, media_type=_TYPES[f".{name.rpartition('.')[2]}"])


def _paged(folder: RunFolder, answer: Callable[..., Row], request: Request) -> Row:
    return answer(folder, _number(request, "before", None), _limit(request))


def _limit(request: Request) -> int:
    return min(MOST_ROWS, max(1, _number(request, "limit", 50) or 50))


def _number(request: Request, name: str, default: int | None) -> int | None:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not given.isdecimal():
        raise HTTPException(400, f"{name}={given} is no number")
    return int(given)


def _view(request: Request) -> tuple[View, list[str]]:
    given = request.query_params.get("view", View.LOGICAL)
    if given not in set(View):
        raise HTTPException(400, f"view={given} is not {' or '.join(View)}")
    return View(given), request.query_params.getlist("open")


def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, DagkitError), "only errors of dagkit come here"
    explained = error.explained
    body = {"problem": str(error)} if explained is None else {"code": explained.code, "problem": explained.problem}
    return JSONResponse({**body, "help": explained.help if explained is not None else ""}, status_code=500)


def _missing(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "only HTTP exceptions come here"
    return JSONResponse({"problem": error.detail}, status_code=error.status_code, headers=error.headers)
