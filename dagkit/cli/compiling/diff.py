"""`dagkit diff`: what changes between two applications or plans."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import rich_click as click
from click.exceptions import Exit

from dagkit.cli.application.finding import holds_a_ledger
from dagkit.cli.application.opening import compiled
from dagkit.cli.application.options import Asked, configured, spoken
from dagkit.cli.compiling.next_launch import change_fields, fates, judged
from dagkit.cli.terminal.output import Output
from dagkit.compiler import Compilation
from dagkit.engine.record.state_verdicts import Fate
from dagkit.engine.run.launch_record import last_launch
from dagkit.errors import ApplicationNotFound
from dagkit.ground.amounts import counted
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

    If OLD is such a folder and NEW an application, also show what its next launch does with the state in the folder.

    The options that configure apply to both. Explanations in a plan, such as the reason of a cut, are not compared.
    """
    (before, _), (after, compilation) = (planned(configuring(side), output) for side in (old, new))
    changes = changes_between(before, after)
    state = judged(Ledger.open(old), compilation) if holds_a_ledger(old) and compilation is not None else None
    if output.as_json:
        described = {"old": _side(old, before), "new": _side(new, after), "changed": bool(changes)}
        fields = None if state is None else [asdict(verdict) for verdict in state]
        output.document("dagkit.diff/1", {**described, "changes": change_fields(changes), "state": fields})
    else:
        if changes:
            output.result("\n".join(map(str, changes)))
        output.message(_verdict(before, after, len(changes)))
        if state is not None:
            output.result("\n".join(fates(state)))
    if coded and (changes or any(verdict.fate is Fate.REFUSED for verdict in state or ())):
        raise Exit(CHANGED)


def planned(asked: Asked, output: Output) -> tuple[Plan, Compilation | None]:
    """The plan in the file, that of the last launch in the folder, or that of the application, which is compiled."""
    if holds_a_ledger(asked.target):
        record = last_launch(Ledger.open(asked.target).store)
        if record is None:
            raise ApplicationNotFound(f"{asked.target} has no plan: no launch has recorded one", "launch it once")
        return record.authored, None
    # `os.path.isfile`, unlike that of Path, accepts names that no file can have
    if os.path.isfile(asked.target) and not asked.target.endswith(".py"):  # noqa: PTH113
        text = Path(asked.target).read_text(encoding="utf-8", errors="replace")
        if _claims_to_be_a_plan(text):
            return read_plan(text, asked.target), None
    compilation = compiled(asked, output)
    return compilation.plan, compilation


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
