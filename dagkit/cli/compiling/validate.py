"""`dagkit validate`: check an application and its configuration."""

from typing import TYPE_CHECKING, Any

import rich_click as click

from dagkit.cli.application.finding import holds_a_ledger
from dagkit.cli.application.opening import compiled
from dagkit.cli.application.options import Asked, application, spoken
from dagkit.cli.terminal.output import Output, diagnostic_fields, failure_fields, severity_counts
from dagkit.compiler import Compilation
from dagkit.compiler.steps import application_path
from dagkit.errors import ApplicationFaults
from dagkit.ground.amounts import counted
from dagkit.ground.urls import absolute, is_url

if TYPE_CHECKING:
    from dagkit.cli.compiling.next_launch import NextLaunch


@click.command()
@application
@click.option("--path", metavar="FOLDER", help="The application's folder, as for `launch`.")
@spoken
def validate(*, asked: Asked, output: Output, path: str | None) -> None:
    """Check an application and its configuration, and report every fault at once.

    Runs nothing, and needs neither Spark nor Java. Exits with 3 if there are faults, or with 4 if all of them are
    faults of the configuration.
    """
    try:
        compilation = compiled(asked, output)
    except ApplicationFaults as faults:
        if output.as_json:
            output.document("dagkit.validation/1", {"valid": False, **failure_fields(faults)})
        output.end(faults)
    output.notes(compilation.notes)
    following = _next_launch(compilation, path)
    if output.as_json:
        ledger = None if following is None else following.fields()
        output.document("dagkit.validation/1", {**_fields(compilation), "ledger": ledger})
    else:
        output.result("\n".join([_sentence(compilation), *(following.lines() if following is not None else ())]))


def _next_launch(compilation: Compilation, path: str | None) -> "NextLaunch | None":
    """What the next launch does with what is in the folder; None if it begins, or if the folder is remote."""
    place = path or application_path(compilation)
    if is_url(place) or not holds_a_ledger(place):
        return None
    from dagkit.cli.compiling.next_launch import NextLaunch  # noqa: PLC0415 - imports much; most have no ledger

    return NextLaunch.at(absolute(place), compilation)


def _fields(compilation: Compilation) -> dict[str, Any]:
    plan = compilation.plan
    return {
        "valid": True,
        "application": compilation.application,
        "exit_code": 0,
        "operators": len(plan.operators),
        "streams": len(plan.streams),
        "stages": len(plan.stages),
        "diagnostics": [diagnostic_fields(note) for note in compilation.notes],
    }


def _sentence(compilation: Compilation) -> str:
    plan = compilation.plan
    held = ", ".join(
        [
            counted(len(plan.operators), "operator"),
            counted(len(plan.streams), "stream"),
            counted(len(plan.stages), "stage"),
        ]
    )
    notes = severity_counts(compilation.notes)
    return f"{compilation.application} is valid: {held}" + (f"; {notes}" if notes else "")
