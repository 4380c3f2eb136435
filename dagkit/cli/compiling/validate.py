"""`dagkit validate`: check an application and its configuration."""

from typing import Any

import rich_click as click

from dagkit.cli.application.opening import compiled
from dagkit.cli.application.options import Asked, application, spoken
from dagkit.cli.terminal.output import Output, diagnostic_fields, failure_fields, severity_counts
from dagkit.compiler import Compilation
from dagkit.errors import ApplicationFaults
from dagkit.observers.amounts import counted


@click.command()
@application
@spoken
def validate(*, asked: Asked, output: Output) -> None:
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
    if output.as_json:
        output.document("dagkit.validation/1", _fields(compilation))
    else:
        output.result(_sentence(compilation))


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
