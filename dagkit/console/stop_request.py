"""The request to stop the run, on behalf of the page."""

from datetime import UTC, datetime

from starlette.exceptions import HTTPException

from dagkit.console.run_folder import RunFolder
from dagkit.console.window_answers import Row
from dagkit.engine.parts.requests import StopRun, ask


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
