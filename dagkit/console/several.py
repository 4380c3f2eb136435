"""The console of a folder of applications: a list of them, and the console of each below `/of/NAME/`."""

import threading
from dataclasses import dataclass
from functools import partial

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
from dagkit.ground.urls import absolute
from dagkit.runs.inventory.applications import last_launch_in, launched_in, name_of


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
            # only names that are listed, so that none, such as `..`, leads out of the folder
            places = {name_of(place): place for place in await run_in_threadpool(launched_in, self.place)}
            if name not in places:
                raise HTTPException(404, f"the folder has no application {name!r}")
            if name not in self.opened:  # another request may have come meanwhile
                folder = RunFolder(absolute(places[name]))
                self.opened[name] = interface(folder, self.closing, allows_control=self.allows_control)
        await self.opened[name](scope, receive, send)

    def listed(self, _: Request) -> Response:
        """The applications with their states."""
        rows = list(map(_row, launched_in(self.place)))
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


def _row(place: str) -> Row:
    name, (seen, faults) = name_of(place), last_launch_in(place)
    application = name if seen is None else seen.launch.application
    fault = faults[0].problem if faults else ""
    return {"name": name, "application": application, "status": status_of(seen), "fault": fault}
