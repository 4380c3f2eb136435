"""`dagkit replay`: run a window again with the present code, and compare what it writes."""

import difflib
import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import rich_click as click
from click.exceptions import Exit

from dagkit.cli.application.opening import opened
from dagkit.cli.application.options import Asked, WholeNumber, application, spoken
from dagkit.cli.terminal.output import Output, WrongUsage, shown_place
from dagkit.compiler.steps import application_path
from dagkit.engine.record.journal import refuse_another
from dagkit.errors import printable
from dagkit.ground.amounts import counted
from dagkit.ground.urls import absolute
from dagkit.ledger import Ledger
from dagkit.runs.replaying import Compared, replayed, windows_of

_DIFFERS = 10
"""The exit code if the output differs."""


@click.command()
@application
@click.option("--window", metavar="N", type=WholeNumber(min=1), help="The window to run again.")
@click.option("--file", metavar="PATH", help="Run the windows again that read this input file.")
@click.option("--into", metavar="FOLDER", help="Keep what the replay writes, in a new folder.")
@click.option(
    "--limit", metavar="N", type=WholeNumber(min=0), default=40, help="Print N lines of differences; default 40."
)
@click.option("--path", metavar="FOLDER", help="The application's folder, as for `launch`.")
@spoken
def replay(
    *,
    asked: Asked,
    output: Output,
    window: int | None,
    file: str | None,
    into: str | None,
    limit: int,
    path: str | None,
) -> None:
    """Run an earlier window again, with the present code and configuration, and compare what it writes.

    It runs in this process, without Spark. The application's ledger and its output are only read; it may be running.
    Exits with 10 if the output differs.
    """
    if (window is None) == (file is None):
        raise click.UsageError("give either --window or --file")
    if into is not None and Path(into).exists():
        raise WrongUsage(f"{into} exists: --into makes a new folder")
    with opened(asked, output) as app:
        compilation = app.compiled()
        place = absolute(path or application_path(compilation))
        ledger = Ledger.open(place)
        refuse_another(ledger, compilation.application)
        windows = [window] if window is not None else windows_of(ledger, absolute(str(file)))
        if not windows:
            raise WrongUsage(f"no window read {absolute(str(file))}; `dagkit files` lists the files that windows read")
        results = []
        for number in windows:
            output.detail(f"window {number} runs again")
            with tempfile.TemporaryDirectory(prefix="dagkit-replay-") as shadow:
                results += [
                    (number, compared) for compared in replayed(compilation, ledger, place, number, Path(shadow))
                ]
    if into is not None:
        _keep(results, Path(into))
    _show(results, limit, output)
    if not all(compared.is_equal for _, compared in results):
        raise Exit(_DIFFERS)


def _keep(results: Sequence[tuple[int, Compared]], into: Path) -> None:
    """Write what the replay wrote: `FOLDER/WINDOW/OPERATOR/NAME`; without a name, the rows of several files.

    If an operator wrote into several folders, the names keep what differs in their paths.
    """
    folders: dict[tuple[int, str], list[list[str]]] = {}
    for window, compared in results:
        if compared.file is not None:
            folders.setdefault((window, compared.operator), []).append(compared.file.split("/")[:-1])
    for window, compared in results:
        name = "rows"
        if compared.file is not None:
            shared = os.path.commonprefix(folders[window, compared.operator])  # noqa: RUF071 - of lists of names
            name = "/".join(compared.file.split("/")[len(shared) :]).lstrip("/")
        kept = into / str(window) / quote(compared.operator, safe=" ") / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(b"".join(compared.now))


def _show(results: Sequence[tuple[int, Compared]], limit: int, output: Output) -> None:
    if output.as_json:
        output.document(
            "dagkit.replay/1", {"outputs": [_document(window, compared, limit) for window, compared in results]}
        )
        return
    for window, compared in results:
        output.result(f"window {window}, {compared.operator}{_named(compared)}: {_verdict(compared)}")
        lines = list(_difference(compared))
        output.result(*lines[:limit])
        if len(lines) > limit:
            output.result(f"… {counted(len(lines) - limit, 'line')} more")
    if not results:
        output.result("the window wrote no files, and writes none now")


def _named(compared: Compared) -> str:
    return "" if compared.file is None else f" {shown_place(compared.file)}"


def _verdict(compared: Compared) -> str:
    if compared.is_equal:
        return f"{counted(len(compared.now), 'row')}, all the same"
    gone, new = len(compared.before) - compared.same, len(compared.now) - compared.same
    if not gone and not new:
        return f"{counted(len(compared.now), 'row')}, in another order"
    return f"{counted(compared.same, 'row')} the same, {gone} only in the output, {new} only in the replay"


def _difference(compared: Compared) -> Iterator[str]:
    """The unified difference, without the lines that name files."""
    before, now = ([_text(row) for row in rows] for rows in (compared.before, compared.now))
    return itertools.islice(difflib.unified_diff(before, now, lineterm="", n=1), 2, None)


def _text(row: bytes) -> str:
    return printable(row.decode(errors="backslashreplace").removesuffix("\n"))


def _document(window: int, compared: Compared, limit: int) -> dict[str, Any]:
    return {
        "window": window,
        "operator": compared.operator,
        "file": compared.file,
        "equal": compared.is_equal,
        "same": compared.same,
        "before": len(compared.before),
        "now": len(compared.now),
        "difference": list(itertools.islice(_difference(compared), limit)),
    }
