"""`dagkit set`: change a property of an operator while its application runs."""

from collections.abc import Callable

import rich_click as click

from dagkit.cli.application.asking import answered, waiting
from dagkit.cli.application.located import app_or_path, located
from dagkit.cli.application.options import Asked, configured, spoken
from dagkit.cli.terminal.output import Output, shown_value
from dagkit.compiler.reconfigure import plain_secret, reconfigured
from dagkit.engine.parts.requests import Refused, SetValue
from dagkit.errors import ApplicationFaults, ChangeRefused


@click.command("set")
@app_or_path
@click.argument("operator")
@click.argument("name", metavar="PROPERTY")
@click.argument("value")
@click.option("--path", metavar="FOLDER", help="The application's folder, if APP is launched with --path.")
@waiting
@configured
@spoken
def set(  # noqa: A001 - commands are called as they are written
    *,
    target: str,
    operator: str,
    name: str,
    value: str,
    path: str | None,
    seconds: float,
    configuring: Callable[[str], Asked],
    output: Output,
) -> None:
    """Change a property of an operator while its application runs, from the next window on.

    PROPERTY and VALUE are written as in a property file after `operator.NAME.prop.`. The attributes PARTITIONER,
    STATS_LISTENERS and RECOVERY_ATTEMPTS can be set, too. With APP, this command checks the value before it sends the
    request; with PATH, only the driver checks it.
    """
    there = located(target, path, configuring, output)
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
