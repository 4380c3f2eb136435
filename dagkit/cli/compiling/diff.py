"""`dagkit diff`: what changes between two applications or plans."""

import json
from collections.abc import Callable
from pathlib import Path

import rich_click as click
from click.exceptions import Exit

from dagkit.cli.application.located import holds_a_ledger
from dagkit.cli.application.opening import compiled
from dagkit.cli.application.options import Asked, configured, spoken
from dagkit.cli.terminal.output import Output, counted
from dagkit.engine.run.launch_record import last_launch
from dagkit.errors import ApplicationNotFound
from dagkit.ledger import Ledger
from dagkit.plan import Plan, fingerprint, read_plan
from dagkit.plan import diff as changes_between
from dagkit.plan.model import PLAN_SCHEMA

CHANGED = 10
"""The exit code of `--exit-code` if there are changes."""


@click.command()
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@click.option("--exit-code", "coded", is_flag=True, help="Exit with 10 if there are changes.")
@configured
@spoken
def diff(*, old: str, new: str, coded: bool, configuring: Callable[[str], Asked], output: Output) -> None:
    """Show what changes from OLD to NEW.

    Each is an application, a plan that `dagkit plan --json` printed, or the folder of an application that runs or ran.

    The options that configure apply to both. Explanations in a plan, such as the reason of a cut, are not compared.
    """
    before, after = (planned(configuring(side), output) for side in (old, new))
    changes = changes_between(before, after)
    if output.as_json:
        listed = [{"kind": change.kind, "subject": change.subject, "text": change.text} for change in changes]
        described = {"old": _side(old, before), "new": _side(new, after)}
        output.document("dagkit.diff/1", {**described, "changed": bool(changes), "changes": listed})
    else:
        if changes:
            output.result("\n".join(map(str, changes)))
        output.message(_verdict(before, after, len(changes)))
    if changes and coded:
        raise Exit(CHANGED)


def planned(asked: Asked, output: Output) -> Plan:
    """The plan in the file, that of the last launch in the folder, or the compiled plan of the application there."""
    path = Path(asked.target)
    if holds_a_ledger(asked.target):
        record = last_launch(Ledger.open(asked.target).store)
        if record is None:
            raise ApplicationNotFound(f"{asked.target} has no plan: no launch has recorded one", "launch it once")
        return record.plan
    if path.is_file() and path.suffix != ".py":
        text = path.read_text(encoding="utf-8", errors="replace")
        if _claims_to_be_a_plan(text):
            return read_plan(text, asked.target)
    return compiled(asked, output).plan


def _claims_to_be_a_plan(text: str) -> bool:
    """Whether the text has the schema of a plan, of any version; other JSON may be a declared application."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    family = PLAN_SCHEMA.partition("/")[0]
    return isinstance(data, dict) and str(data.get("schema", "")).partition("/")[0] == family


def _side(target: str, plan: Plan) -> dict[str, str]:
    return {"target": target, "application": plan.application, "fingerprint": fingerprint(plan)}


def _verdict(before: Plan, after: Plan, changes: int) -> str:
    if not changes:
        return f"no change: both plans are {fingerprint(after)}"
    return f"{counted(changes, 'change')}: {fingerprint(before)} becomes {fingerprint(after)}"
