"""`dagkit set`: change a property of an operator while its application runs."""

from collections.abc import Callable
from pathlib import Path

import rich_click as click

from dagkit.cli.application.asking import answered, waiting
from dagkit.cli.application.opening import compiled
from dagkit.cli.application.options import Asked, configured, spoken
from dagkit.cli.terminal.output import Output, shown_value
from dagkit.compiler import Compilation
from dagkit.compiler.reconfigure import plain_secret, reconfigured
from dagkit.engine.changes.requests import Refused, SetValue
from dagkit.errors import ApplicationNotFound
from dagkit.launching import application_path
from dagkit.urls import absolute, is_url


@click.command("set")
@click.argument("target", metavar="APP|PATH")
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
    if path is None and _holds_a_ledger(target):
        place = absolute(target)
        if (fault := plain_secret(operator, name, value)) is not None:
            raise Refused.because(str(fault))
    else:
        compilation = _compiled(target, configuring, output)
        reconfigured(compilation, operator, name, value)
        place = absolute(path or application_path(compilation))
    reply = answered(place, SetValue(operator=operator, name=name, value=value), seconds)
    name = reply.name or name
    if output.as_json:
        body = {"operator": operator, "name": name, "window": reply.window, "before": reply.before}
        output.document("dagkit.set/1", {**body, "after": reply.after})
        return
    output.result(
        f"{operator}.{name} is {shown_value(reply.after)} from window {reply.window} on "
        f"(before: {shown_value(reply.before)})"
    )


def _compiled(target: str, configuring: Callable[[str], Asked], output: Output) -> Compilation:
    try:
        return compiled(configuring(target), output)
    except ApplicationNotFound as missing:
        instead = f"{missing.help}; or give the folder that it runs in, which holds a ledger"
        raise ApplicationNotFound(missing.problem, instead) from missing


def _holds_a_ledger(target: str) -> bool:
    """Whether the target is an application's folder, not an application; a URL is always a folder."""
    return is_url(target) or (Path(target) / "ledger" / "ledger.json").is_file()
