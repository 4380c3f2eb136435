"""The stream of server-sent events: the status of the run, whenever it changes."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from dagkit.console.run_folder import RunFolder, status_of

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
