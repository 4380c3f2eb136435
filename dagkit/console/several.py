"""The console of a folder of applications: a list of them, and the console of each below `/of/NAME/`."""

import threading
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from dagkit.console.interface import HANDLERS, interface, static, static_routes
from dagkit.console.run_folder import RunFolder
from dagkit.console.status_answers import status_of
from dagkit.console.tables import Row
from dagkit.engine.record.status_file import SeenRun
from dagkit.engine.run.launch_record import is_kept
from dagkit.ground.urls import absolute
from dagkit.runs.inventory.applications import applications


@dataclass(frozen=True, slots=True)
class Several:
    """The consoles of the applications in a folder, each made when it is first opened."""

    place: str
    closing: threading.Event
    allows_control: bool
    opened: dict[str, Starlette]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request to the console of one application."""
        name = scope["path_params"]["name"]
        if name not in self.opened:
            place = await run_in_threadpool(lambda: next((p for p, _ in self.found() if _name_of(p) == name), None))
            if place is None:
                raise HTTPException(404, f"the folder has no application {name!r}")
            folder = RunFolder(absolute(place))
            self.opened[name] = interface(folder, self.closing, allows_control=self.allows_control)
        await self.opened[name](scope, receive, send)

    def found(self) -> list[tuple[str, SeenRun | None]]:
        """The applications with their last launches, without earlier runs that `launch --fresh` kept."""
        return [(place, seen) for place, seen in applications(self.place) if not is_kept(_name_of(place))]

    def listed(self, _: Request) -> Response:
        """The applications with their states."""
        rows = [_row(place, seen) for place, seen in self.found()]
        return JSONResponse({"schema": "dagkit.console.applications/1", "path": self.place, "rows": rows})


def interface_of_several(place: str, closing: threading.Event, *, allows_control: bool) -> Starlette:
    """The ASGI application for a folder of applications, also of those that are launched later."""
    several = Several(place, closing, allows_control, {})
    return Starlette(
        routes=[
            Route("/", partial(static, "applications.html")),
            Route("/api/v1/applications", several.listed),
            Mount("/of/{name}", several),
            *static_routes(),
        ],
        exception_handlers=HANDLERS,
    )


def _name_of(place: str) -> str:
    return PurePosixPath(place).name


def _row(place: str, seen: SeenRun | None) -> Row:
    name = _name_of(place)
    return {
        "name": name,
        "application": name if seen is None else seen.snapshot.launch.application,
        "status": status_of(seen),
    }
