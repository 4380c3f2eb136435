"""`dagkit set`: change a property of an operator while its application runs."""

import rich_click as click

from dagkit.cli.application.answer_wait import waiting
from dagkit.cli.application.located import Located, of_application
from dagkit.cli.terminal.output import Output, shown_value
from dagkit.compiler.reconfigure import plain_secret, reconfigured
from dagkit.engine.parts.asking import answered
from dagkit.engine.parts.requests import Refused, SetValue
from dagkit.errors import ApplicationFaults, ChangeRefused


@click.command("set")
@of_application
@click.argument("operator")
@click.argument("name", metavar="PROPERTY")
@click.argument("value")
@waiting
def set(  # noqa: A001 - commands are called as they are written
    *,
    there: Located,
    operator: str,
    name: str,
    value: str,
    seconds: float,
    output: Output,
) -> None:
    """Change a property of an operator while its application runs, from the next window on.

    PROPERTY and VALUE are written as in a property file after `operator.NAME.prop.`. The attributes PARTITIONER,
    STATS_LISTENERS and RECOVERY_ATTEMPTS can be set, too. With APP, this command checks the value before it sends the
    request; with PATH, only the driver checks it.
    """
    if there.compilation is not None:
        try:
            reconfigured(there.compilation, operator, name, value)
        except ApplicationFaults as faults:
            raise ChangeRefused(faults.application, faults.diagnostics) from faults.__cause__
    elif (fault := plain_secret(operator, name, value)) is not None:
        raise Refused.because(str(fault))
    reply = answered(there.place, SetValue(operator=operator, name=name, value=value), seconds)
    name = reply.name or name
    if output.as_json:
        body = {"operator": operator, "name": name, "window": reply.window, "before": reply.before}
        output.document("dagkit.set/1", {**body, "after": reply.after})
        return
    output.result(
        f"{operator}.{name} is {shown_value(reply.after)} from window {reply.window} on "
        f"(before: {shown_value(reply.before)})"
    )
