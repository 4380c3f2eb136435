"""`dagkit work`: the work of an application that is not done, and requests to give it up or to retry it."""

from collections.abc import Sequence

import rich_click as click

from dagkit.cli.application.grouping import DefaultGroup
from dagkit.cli.application.located import Located, of_application_or_only
from dagkit.cli.inspecting.files.targets import ledger_of
from dagkit.cli.inspecting.work.requesting import give_up, of_operator, retry
from dagkit.cli.terminal.output import Output
from dagkit.engine.record.work_history import ListedWork, listed_work
from dagkit.errors import printable
from dagkit.ground.amounts import counted


@click.group(cls=DefaultGroup, default="ls")
def work() -> None:
    """List the work of an application that is not done; give it up, or retry what was set aside.

    PLACE is an element as `dagkit work ls` lists it: a name, such as a path, for all of its work, or a name with a
    range, as in 'in/a.txt[0, 100)'.
    """


@work.command()
@of_application_or_only
@of_operator
def ls(*, there: Located, output: Output, operator: str | None) -> None:
    """List work that waits, that was set aside, and that was given up. The application may be running."""
    found = [each for each in listed_work(ledger_of(there)) if operator in (None, each.operator)]
    if output.as_json:
        output.document("dagkit.work/1", {"work": [each.as_json() for each in found]})
        return
    if found:
        output.result("\n".join(map(_line, found)))
    output.message(counted(len(found), "range") if found else "no work waits, was set aside or was given up")


work.add_command(give_up)
work.add_command(retry)


def _line(each: ListedWork) -> str:
    notes: Sequence[str] = [
        *([f"in window {each.window}"] if each.window is not None else []),
        *([f"by {each.by}"] if each.by else []),
        *([each.reason] if each.reason else []),
    ]
    noted = f": {printable(', '.join(notes))}" if notes else ""
    return f"{each.state:<9}  {printable(each.operator)}  {printable(str(each.place))}{noted}"
