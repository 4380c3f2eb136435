"""`dagkit trace`: from a line of an output file to the record of its input."""

from dataclasses import asdict

import rich_click as click

from dagkit.cli.application.opening import opened
from dagkit.cli.application.options import Asked, application, spoken
from dagkit.cli.terminal.output import Output, shown_place
from dagkit.compiler.steps import application_path
from dagkit.engine.record.journal import refuse_another
from dagkit.errors import printable
from dagkit.ground.urls import absolute
from dagkit.ledger import Ledger
from dagkit.runs.retrace import LineUnknown, Source, Traced
from dagkit.runs.retrace import trace as retrace


@click.command()
@application
@click.argument("place", metavar="OUTPUT:LINE")
@click.option("--path", metavar="FOLDER", help="The application's folder, as for `launch`.")
@spoken
def trace(*, asked: Asked, output: Output, place: str, path: str | None) -> None:
    """Find the file and the bytes of the input from which a line of an output file was made.

    The blocks that the line's window consumed are read again, and run through the operators between reader and writer.
    Nothing is written. The first line of OUTPUT is 1.
    """
    file, _, line = place.rpartition(":")
    if not file or not line.isdecimal() or not int(line):
        raise click.UsageError(f"{place!r} does not have the form OUTPUT:LINE, with a line from 1 on")
    with opened(asked, output) as app:
        compilation = app.compiled()
        ledger = Ledger.open(absolute(path or application_path(compilation)))
        refuse_another(ledger, compilation.application)
        try:
            traced = retrace(compilation, ledger, absolute(file), int(line))
        except LineUnknown as unknown:
            raise click.UsageError(str(unknown)) from unknown
    if output.as_json:
        output.document("dagkit.trace/1", {"output": file, "line": int(line), **asdict(traced)})
    else:
        output.result("\n".join([f"{place}: {printable(traced.text)}", *_answer(traced)]))


def _answer(traced: Traced) -> list[str]:
    by = f"written by {traced.operator} in window {traced.window}"
    if traced.reason:
        earlier = "and records of earlier windows, through the state of"
        kept = [f"{earlier} {' and '.join(map(printable, traced.keeping))}"] if traced.keeping else []
        return [f"{by}; no single record: {traced.reason}", "the window consumed", *map(_line, traced.sources), *kept]
    return [by if len(traced.sources) == 1 else f"{by}, from one of these records", *map(_line, traced.sources)]


def _line(source: Source) -> str:
    of = " of the decompressed content" if source.decompressed else ""
    text = "" if source.text is None else f": {printable(source.text)}"
    return f"{shown_place(source.source)}:byte {source.start}-{'' if source.end is None else source.end}{of}{text}"
