"""Builds the documents as a site: `python docs/site/build.py [FOLDER]`. Warnings are errors.

The pages are those of this folder's parent. A reference is generated from the code: the public names, the commands, the
operators with their properties, and the attributes.
"""

import importlib
import inspect
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, get_origin

import click
from sphinx.cmd.build import main as sphinx_build

from dagkit.api.attributes import BY_SCOPE
from dagkit.cli.application.anatomy import anatomy_of
from dagkit.cli.application.operator_lookup import libraries
from dagkit.cli.group import COMMANDS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build"

PARTS = {
    "Start": ["first-look", "tutorial", "files-end-to-end", "installing", "recipes"],
    "Coming from": ["coming-from-apex", "coming-from"],
    "Write": ["writing-operators", "splitting", "partitions", "operators", "testing", "file-policy", "properties"],
    "Connect": ["connectors", "redis", "kafka", "tables", "time"],
    "Operate": ["cli", "clusters", "console", "bad-records", "metrics", "ledger", "security", "errors"],
    "Reference": ["reference/api", "reference/commands", "reference/operators", "reference/attributes"],
    "Explain": ["architecture", "benchmarks", "open-ends", "decisions/index"],
}
"""The order of the pages. A page that is missing here is a fault: it would be in no table of contents."""

PUBLIC = ("dagkit", "dagkit.launching", "dagkit.testing", "dagkit.ranges", "dagkit.scaling", "dagkit_operators")


def main(arguments: Sequence[str]) -> int:
    """Build the site; return the exit code of Sphinx."""
    source, target = BUILD / "site-source", Path(arguments[0]) if arguments else BUILD / "site"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(HERE.parent, source, ignore=shutil.ignore_patterns("site", "__pycache__"))
    pages = {"index": index(), "decisions/index": decisions(source)}
    pages |= {"reference/api": api(), "reference/commands": commands()}
    pages |= {"reference/operators": operators(), "reference/attributes": attributes()}
    for name, lines in pages.items():
        page = source / f"{name}.md"
        page.parent.mkdir(exist_ok=True)
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return sphinx_build(["-q", "-W", "--keep-going", "-b", "html", "-c", str(HERE), str(source), str(target)])


def index() -> Iterator[str]:
    """The first page: what README says before its first heading of the second level, and the table of contents."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    yield readme.partition("\n## ")[0].replace("](docs/", "](")
    for part, pages in PARTS.items():
        yield from ("", "```{toctree}", f":caption: {part}", ":hidden:", "", *pages, "```")


def decisions(source: Path) -> Iterator[str]:
    """The list of decisions."""
    yield from ("# Decisions", "", "```{toctree}", ":maxdepth: 1", "")
    yield from sorted(path.stem for path in (source / "decisions").glob("0*.md"))
    yield "```"


# -- reference ---------------------------------------------------------------------------------------------------------


def api() -> Iterator[str]:
    """Every public name with its signature and its documentation."""
    yield "# Python names"
    for package in PUBLIC:
        module = importlib.import_module(package)
        yield from ("", f"## {package}", "", *_prose(inspect.getdoc(module)))
        for name in sorted(getattr(module, "__all__", None) or vars(module)):
            value = getattr(module, name)
            if not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value)):
                yield from (
                    "",
                    f"### {name}",
                    "",
                    "```python",
                    _signature(name, value),
                    "```",
                    "",
                    *_prose(value.__doc__),
                )


def _signature(name: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # some classes of C have none
        return name
    plain = [each.replace(annotation=_without_checks(each.annotation)) for each in signature.parameters.values()]
    return f"{'class ' if inspect.isclass(value) else ''}{name}{signature.replace(parameters=plain)}"


def _without_checks(annotation: Any) -> Any:
    """A type without the functions that check its values, whose representation is no Python."""
    return annotation.__origin__ if get_origin(annotation) is Annotated else annotation


def commands() -> Iterator[str]:
    """Every command with its options."""
    yield "# Commands and options"
    for known in COMMANDS:
        yield from _command(known.load(), f"dagkit {known.name}", 2)


def _command(command: click.Command, path: str, level: int) -> Iterator[str]:
    yield from ("", f"{'#' * level} {path}", "", *_prose(command.help))
    rows = [_option(each) for each in command.params if isinstance(each, click.Option) and not each.hidden]
    yield from _table(("Option", "Meaning"), rows)
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from _command(inner, f"{path} {name}", level + 1)


def _option(option: click.Option) -> tuple[str, str]:
    takes = "" if option.is_flag else f" {option.metavar or option.type.name.upper()}"
    return ", ".join(f"`{name}{takes}`" for name in option.opts), _escaped(option.help or "")


def operators() -> Iterator[str]:
    """Every operator of the installed libraries, with its ports and properties."""
    yield "# Operators and properties"
    for library in libraries():
        for name, operator in sorted(library.operators.items()):
            sheet = anatomy_of(operator)
            yield from ("", f"## {name}", "", *_prose(sheet.doc))
            ports = [(f"`{p.name}`", p.side, f"`{p.payload}`") for p in sheet.ports]
            yield from _table(("Port", "Side", "Items"), ports)
            rows = [(f"`{p.name}`", f"`{p.type}`", _escaped(str(p.doc or ""))) for p in sheet.properties]
            yield from _table(("Property", "Type", "Meaning"), rows)


def attributes() -> Iterator[str]:
    """Every attribute, by what it is set on."""
    yield "# Attributes"
    for scope, catalogue in BY_SCOPE.items():
        rows = [
            (f"`{name}`", f"`{known.default!r}`", known.standing, _escaped(known.meaning))
            for name, known in catalogue.items()
        ]
        yield from ("", f"## {scope}", "", *_table(("Attribute", "Default", "Effect", "Meaning"), rows))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield from ("", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}")
        yield from (f"| {' | '.join(' '.join(cell.split()).replace('|', BAR) for cell in row)} |" for row in rows)


BAR = "\\|"


def _prose(doc: str | None) -> Iterator[str]:
    """A docstring as Markdown: its paragraphs, and indented lines as code."""
    for paragraph in inspect.cleandoc(doc or "").split("\n\n"):
        if all(line.startswith("    ") for line in paragraph.splitlines()) or "\n    " in paragraph:
            yield from ("```text", paragraph, "```", "")
        else:
            yield from (_escaped(paragraph), "")


def _escaped(text: str) -> str:
    """The text without meaning for Markdown outside of code in backticks."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        parts[index] = "".join(
            f"\\{character}" if character in "\\*_[]<>{}#$" else character for character in parts[index]
        )
    return "`".join(parts)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
