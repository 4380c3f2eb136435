"""`dagkit config`: the configuration of an application, and where each value comes from."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import rich_click as click

from dagkit.api.configuration import Config, Entry
from dagkit.cli.application.opening import Opened, opened
from dagkit.cli.application.options import Asked, application, spoken
from dagkit.cli.terminal.output import Output
from dagkit.cli.terminal.pages import as_json, table
from dagkit.conf.grammar.property_keys import Address, Element, PropertyPath, parse_key
from dagkit.errors import ApplicationFaults, errors_among
from dagkit.plan.portable import MASK, portable


@dataclass(frozen=True, slots=True)
class Line:
    """One key from one source, and whether its value is in effect."""

    entry: Entry
    holds: bool
    secret: bool

    @property
    def key(self) -> str:
        return self.entry.key

    @property
    def shown(self) -> Any:
        """The value, or the visible form of a secret."""
        if self.entry.secret:
            return self.entry.shown
        return MASK if self.secret else portable(self.entry.value)

    @property
    def text(self) -> str:
        return self.shown if isinstance(self.shown, str) else as_json(self.shown)

    @property
    def source(self) -> str:
        return self.entry.origin.source.name.lower().replace("_", " ")

    @property
    def where(self) -> str:
        return str(self.entry.origin.where or "")


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
    with opened(asked, output) as found:
        if found.missed and not output.verbose:
            output.message(found.missed)
        lines = [line for line in lines_of(found.conf, _secrecy(found)) if line.holds or everything]
        if output.as_json:
            body = {"application": found.application.application_name, "entries": [_fields(line) for line in lines]}
            output.document("dagkit.config/1", body)
        elif origin or everything:
            rows = [(_key(line), line.text, f"<- {line.where}", line.source) for line in lines]
            output.result(table(("key", "value", "from", "source"), rows))
        elif lines:
            output.result("\n".join(f"{line.key} = {line.text}" for line in lines))
        if errors_among(found.faults):
            output.end(found.blamed(found.application.application_name, found.faults))
        output.notes(found.faults)


def _secrecy(found: Opened) -> Callable[[str], bool]:
    """A function that returns whether the property which a key sets has a secret type.

    The types come from the operators of the application. If it cannot be drawn completely, properties of operators
    whose types are unknown are treated as secrets.
    """
    try:
        compilation = found.compiled("resolved", forgiving=True)
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


def lines_of(conf: Config, is_secret: Callable[[str], bool]) -> Iterator[Line]:
    """Every entry, in the order of the keys' first appearance; the effective entry comes before those it overrides."""
    given: dict[Hashable, list[Entry]] = {}
    for entry in conf.entries:
        given.setdefault(_identity(entry.key), []).append(entry)
    for entries in given.values():
        for entry in reversed(entries):
            yield Line(entry, entry is entries[-1], entry.secret or is_secret(entry.key))


def _identity(key: str) -> Hashable:
    """A value that is equal for keys that set the same property."""
    address = parse_key(key)
    return address.identity if isinstance(address, Address) else key


def _key(line: Line) -> str:
    return line.key if line.holds else f"  overridden: {line.key}"


def _fields(line: Line) -> dict[str, Any]:
    where = line.entry.origin.where
    return {
        "key": line.key,
        "value": line.shown,
        "secret": line.secret,
        "source": line.source,
        "file": where.file if where else None,
        "line": where.line if where else None,
        "holds": line.holds,
    }
