"""`dagkit stop`: end a running application after its windows in flight."""

import time

import rich_click as click

from dagkit.cli.application.answer_wait import waiting
from dagkit.cli.application.located import Located, of_application
from dagkit.cli.operating.run_views import document, running_at, seen_at
from dagkit.cli.terminal.output import Output
from dagkit.engine.parts.asking import answered
from dagkit.engine.parts.requests import StopRun

_PAUSE_SECONDS = 0.1


@click.command()
@of_application
@waiting
def stop(*, there: Located, seconds: float, output: Output) -> None:
    """Stop a running application: it commits the windows in flight, finishes its files, and ends.

    The next launch resumes there. The command waits for the end, and works from any host that can write the folder.
    """
    place = there.place
    until = time.monotonic() + seconds
    seen = running_at(place)
    launch_id = seen.launch.id  # another launch may begin as soon as this one has ended
    answered(place, StopRun(launch=launch_id), seconds)
    while (seen := seen_at(place)).runs and seen.launch.id == launch_id:
        if time.monotonic() > until:
            break
        time.sleep(_PAUSE_SECONDS)
    if output.as_json:
        output.document("dagkit.stop/1", document(seen))
    elif seen.runs:
        output.result(f"{seen.launch.application} is {seen.state}: it ends after the windows in flight")
    else:
        output.result(f"{seen.launch.application} {seen.state} after window {seen.window}")
