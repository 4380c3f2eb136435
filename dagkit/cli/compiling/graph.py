"""`dagkit graph`: draw an application."""

import json
import sys
from pathlib import Path

import rich_click as click

from dagkit.cli.application.opening import opened
from dagkit.cli.application.options import Asked, application, spoken
from dagkit.cli.terminal.output import Output, diagnostic_fields, is_terminal, shown_place
from dagkit.compiler import Compilation
from dagkit.errors import RunFailure
from dagkit.graph import Graph
from dagkit.render import BINARY, FORMATS, Format, logical, physical, render

ENDINGS: dict[str, Format] = {
    ".dot": "dot",
    ".gv": "dot",
    ".svg": "svg",
    ".png": "png",
    ".pdf": "pdf",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".txt": "text",
    ".text": "text",
    ".json": "json",
}
"""The format for each file extension."""


@click.command()
@click.option(
    "-f", "--format", "form", type=click.Choice(FORMATS), help="Default: the format of FILE's extension, else text."
)
@click.option("--physical", "is_physical", is_flag=True, help="Draw partitions, stages and exchanges.")
@click.option("-o", "--output", "file", metavar="FILE", type=click.Path(dir_okay=False), help="Write to this file.")
@application
@spoken
def graph(*, asked: Asked, form: Format | None, is_physical: bool, file: str | None, output: Output) -> None:
    """Draw an application: as its author wrote it, or with `--physical` as it will run.

    Only PNG and PDF need Graphviz, or the extra `dagkit[graph-png]`. An application with errors is drawn as far as
    possible, and the errors are reported with the drawing.
    """
    form = _form(form, file, as_json=output.as_json)
    if form in BINARY and file is None and is_terminal(sys.stdout):
        raise click.UsageError(f"a terminal cannot show {form.upper()}; write it to a file with -o FILE")
    with opened(asked, output) as app:
        compilation = app.compiled() if is_physical else app.as_far_as_it_goes()
        drawn = render(physical(compilation.plan) if is_physical else logical(_settled(compilation)), form)
        if form == "json":
            drawn = _with_faults(drawn, compilation)
        if file is None:
            output.raw(drawn)
        else:
            _write(Path(file), drawn)
            output.message(f"wrote {form} of {compilation.application} to {shown_place(file)}")
        app.conclude(compilation, output)


def _settled(compilation: Compilation) -> Graph:
    """The last form before the check that was reached."""
    form = compilation.steps.get("resolved", compilation.graph)
    assert isinstance(form, Graph), "up to `checked` every form is a graph"
    return form


def _with_faults(drawn: bytes, compilation: Compilation) -> bytes:
    """The JSON document of the drawing, with the diagnostics of the application."""
    notes = {"diagnostics": [diagnostic_fields(note) for note in compilation.notes]}
    return json.dumps({**json.loads(drawn), **notes}, indent=2, ensure_ascii=False).encode() + b"\n"


def _form(form: Format | None, file: str | None, *, as_json: bool) -> Format:
    """The requested format; raise if both a picture and a JSON document are requested."""
    if not as_json:
        return form or _format_of(file)
    meant = form or (ENDINGS.get(Path(file).suffix.lower()) if file else None)
    if meant not in (None, "json"):
        asked = f"-f {form}" if form else file
        raise click.UsageError(f"--json is the format json, and {asked} asks for {meant}")
    return "json"


def _format_of(file: str | None) -> Format:
    if file is None:
        return "text"
    ending = Path(file).suffix.lower()
    if ending not in ENDINGS:
        raise click.UsageError(f"{file} has no known extension ({' '.join(ENDINGS)}); name a format with -f")
    return ENDINGS[ending]


def _write(path: Path, drawn: bytes) -> None:
    try:
        path.write_bytes(drawn)
    except OSError as refused:
        raise RunFailure(
            f"cannot write {path}: {refused.strerror}", "choose another file with -o", code="picture-unwritable"
        ) from refused
