"""`dagkit config`: the configuration of an application, and where each value comes from."""

from collections.abc import Callable

import rich_click as click

from dagkit.cli.application.opening import Opened, opened
from dagkit.cli.application.options import Asked, application, spoken
from dagkit.cli.terminal.output import Output
from dagkit.cli.terminal.pages import table
from dagkit.conf.grammar.property_keys import Address, Element, PropertyPath, parse_key
from dagkit.errors import ApplicationFaults, errors_among
from dagkit.plan.configuration_lines import ConfigurationLine, lines_of


@click.command()
@click.option("--origin", is_flag=True, help="Show where each value comes from.")
@click.option("--all", "everything", is_flag=True, help="Show the values that a stronger source overrides, too.")
@application
@spoken
def config(*, asked: Asked, origin: bool, everything: bool, output: Output) -> None:
    """Show the configuration keys of an application and their values; secrets stay hidden.

    The sources, weakest first: the installation's and the application's property files, the user's own, `--apconf`,
    `--conf`, the environment, and `-D`.
    """
    with opened(asked, output) as app:
        if app.missed and not output.verbose:
            output.message(app.missed)
        lines = [line for line in lines_of(app.conf, _secrecy(app)) if line.holds or everything]
        if output.as_json:
            body = {"application": app.application.application_name, "entries": [line.fields() for line in lines]}
            output.document("dagkit.config/1", body)
        elif origin or everything:
            rows = [(_key(line), line.text, f"<- {line.where}", line.source) for line in lines]
            output.result(table(("key", "value", "from", "source"), rows))
        elif lines:
            output.result("\n".join(f"{line.key} = {line.text}" for line in lines))
        if errors_among(app.faults):
            output.end(app.blamed(app.application.application_name, app.faults))
        output.notes(app.faults)


def _secrecy(app: Opened) -> Callable[[str], bool]:
    """A function that returns whether the property which a key sets has a secret type.

    The types come from the operators of the application. If it cannot be drawn completely, properties of operators
    whose types are unknown are treated as secrets.
    """
    try:
        compilation = app.compiled("resolved", forgiving=True)
        known, is_whole = compilation.secrets, compilation.raised is None
    except ApplicationFaults:  # other commands report what is wrong with the application
        known, is_whole = {}, False
    return lambda key: known.get(key, not is_whole and _sets_property_of_operator(key))


def _sets_property_of_operator(key: str) -> bool:
    address = parse_key(key)
    return (
        isinstance(address, Address)
        and address.element in (Element.OPERATOR, Element.TEMPLATE)
        and isinstance(address.sets, PropertyPath)
    )


def _key(line: ConfigurationLine) -> str:
    return line.key if line.holds else f"  overridden: {line.key}"
