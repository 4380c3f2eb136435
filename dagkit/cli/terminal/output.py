"""Prints results and documents to stdout, messages and faults to stderr; in colour only on terminals."""

import contextlib
import errno
import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol

import rich_click as click
from click.exceptions import Exit

from dagkit.api.traces import author_lines
from dagkit.errors import ApplicationFaults, DagkitError, Diagnostic, RunFailure, Scene, Severity, printable
from dagkit.ground.urls import is_url

_UNLIMITED = 10_000
"""The page width for pipes and files, so that each row stays on one line."""


class Interrupted(DagkitError):
    """The user interrupted the command."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("interrupted")


class WrongUsage(DagkitError):
    """The command was called with wrong arguments."""

    exit_code = 2


class Report(Protocol):
    """Takes an event with its fields."""

    def __call__(self, event: str, fields: Mapping[str, Any], *, level: str = "info") -> None: ...


@dataclass(frozen=True, slots=True)
class Output:
    """The form of a command's output, as its options request it."""

    as_json: bool = False
    verbosity: int = 0
    report: Report | None = None
    """With `--log json`: takes messages, notes and failures as events instead of text on stderr."""

    @property
    def quiet(self) -> bool:
        return self.verbosity < 0

    @property
    def verbose(self) -> bool:
        return self.verbosity > 0

    def result(self, *parts: Any) -> None:
        """Print the result: text, or anything that rich can render."""
        for part in parts:
            if isinstance(part, str):
                _write(sys.stdout, part)
            else:
                _print(sys.stdout, _drawn(part))

    def raw(self, data: bytes) -> None:
        """Print these bytes unchanged as the result."""
        nl = not data.endswith(b"\n") and is_terminal(sys.stdout)
        _put(sys.stdout, lambda: click.echo(data, nl=nl))

    def document(self, schema: str, body: Mapping[str, Any]) -> None:
        """Print a JSON document with the name of its schema."""
        _write(sys.stdout, json.dumps({"schema": schema, **body}, indent=2, ensure_ascii=False, default=str))

    def long_document(self, schema: str, name: str, items: Iterable[Mapping[str, Any]]) -> None:
        """Print a JSON document with one list, whose items are printed as they come."""
        before = f'{{\n  "schema": {json.dumps(schema)},\n  {json.dumps(name)}: ['
        for item in items:
            _write(sys.stdout, before + "\n    " + json.dumps(item, ensure_ascii=False, default=str), nl=False)
            before = ","
        _write(sys.stdout, (before if before != "," else "\n  ") + "]\n}")

    def message(self, text: str) -> None:
        """Print a message on stderr, unless quiet."""
        if self.report is not None:
            self.report("printed", {"message": text})
        elif not self.quiet:
            _write(sys.stderr, text)

    def fault(self, text: str) -> None:
        """Print a fault on stderr, also if quiet."""
        _write(sys.stderr, text)

    def detail(self, text: str) -> None:
        """Print a message on stderr if verbose."""
        if self.verbose:
            _write(sys.stderr, text)

    def notes(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Print the warnings and advisories of an application that compiles."""
        if self.report is not None:
            for diagnostic in diagnostics:
                self.report("diagnosed", diagnostic_fields(diagnostic), level="warning")
        elif diagnostics and not self.quiet:
            _write(sys.stderr, "\n".join(str(d) for d in diagnostics), coloured=True)

    def failure(self, failure: DagkitError) -> int:
        """Print the failure and return its exit code."""
        if self.as_json:
            self.document("dagkit.failure/1", failure_fields(failure))
        self.complain(failure)
        return failure.exit_code

    def usage(self, wrong: click.UsageError) -> int:
        """Print what is wrong about the arguments of a command, and return the exit code."""
        problem = wrong.format_message()
        if self.as_json:
            self.document("dagkit.failure/1", {**failure_fields(WrongUsage(problem)), "exit_code": wrong.exit_code})
        lines = [problem]
        if wrong.ctx is not None:
            path = wrong.ctx.command_path
            usage = " ".join([path, *wrong.ctx.command.collect_usage_pieces(wrong.ctx)])
            lines += [f"  usage: {usage}", f"  help: {path} --help"]
        _write(sys.stderr, "\n".join(lines), coloured=True)
        return wrong.exit_code

    def end(self, failure: DagkitError) -> NoReturn:
        """Print the failure beside a result that is already printed, and end the command."""
        self.complain(failure)
        raise Exit(failure.exit_code)

    def complain(self, failure: DagkitError) -> None:
        """Print the failure on stderr, with the author's own lines if their code raised the exception."""
        if self.report is not None:
            fields = failure_fields(failure)
            application = fields.pop("application")
            self.report("stopped", {**fields, **({"app": application} if application else {})}, level="error")
            return
        cause = failure.__cause__ if isinstance(failure, ApplicationFaults) else None
        lines = author_lines(cause) if cause is not None else []
        trace = ["  the lines that led there:", *(f"    {line}" for line in lines)] if lines else []
        _write(sys.stderr, "\n".join([str(failure), *trace]), coloured=True)


class LastResort(logging.Handler):
    """Writes warnings to stderr if the author set up no logging, as Python does, but escapes control characters."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        shown = copy(record)
        if isinstance(record.args, tuple):  # escape line breaks in names, but not those of the message itself
            shown.args = tuple(
                printable(argument) if isinstance(argument, str) else argument for argument in record.args
            )
        _write(sys.stderr, self.format(shown))


def failure_fields(failure: DagkitError) -> dict[str, Any]:
    """The fields of a failure in JSON documents; unknown ones are None."""
    faults = failure if isinstance(failure, ApplicationFaults) else None
    return {
        **_details(failure),
        "application": faults.application if faults else None,
        "message": str(failure).partition("\n")[0] if faults else str(failure),
        "exit_code": failure.exit_code,
        "diagnostics": [diagnostic_fields(d) for d in faults.diagnostics] if faults else [],
    }


def _details(failure: DagkitError) -> dict[str, Any]:
    """The code, problem and help of a failure, and where in the run it happened."""
    explained = failure.explained
    scene = failure.scene if isinstance(failure, RunFailure) else Scene()
    return {
        "code": explained.code if explained else None,
        "problem": explained.problem if explained else None,
        "help": explained.help if explained else None,
        **asdict(scene),
    }


def diagnostic_fields(diagnostic: Diagnostic) -> dict[str, Any]:
    """The fields of a diagnostic in JSON documents."""
    where = diagnostic.where
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "problem": diagnostic.problem,
        "help": diagnostic.help,
        "file": where.file if where else None,
        "line": where.line if where else None,
    }


def is_terminal(stream: IO[str]) -> bool:
    """Whether the stream is a terminal."""
    return stream.isatty()


def is_coloured(stream: IO[str]) -> bool:
    """Whether to write colours: never with NO_COLOR, always with FORCE_COLOR, else on terminals."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (is_terminal(stream) and os.environ.get("TERM") != "dumb")


_shown_from: ContextVar[Path | None] = ContextVar("shown_from", default=None)


@contextmanager
def shown_from(folder: Path) -> Iterator[None]:
    """Show places relative to this folder, in which the user is, also if the working directory changes."""
    before = _shown_from.set(folder)
    try:
        yield
    finally:
        _shown_from.reset(before)


def shown_place(place: str) -> str:
    """A path or a URL in a message: relative if it lies below the user's folder, control characters escaped."""
    if is_url(place):
        return printable(place)
    path, folder = Path(place).absolute(), _shown_from.get() or Path.cwd()
    return printable(str(path.relative_to(folder) if path.is_relative_to(folder) else path))


def shown_value(value: Any) -> str:
    """A value in one line; an object as its class with its arguments."""
    if not isinstance(value, Mapping) or not isinstance(value.get("class"), str):
        return repr(value)
    parts = (f"{name}={shown_value(part)}" for name, part in value.items() if name != "class")
    return f"{value['class'].rpartition('.')[2]}({', '.join(parts)})"


_STYLES: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = (
    (re.compile(r"^\S.* (?:cannot be compiled|was not changed): .*$", re.MULTILINE), {"fg": "red", "bold": True}),
    (re.compile(r"(?<=: )(?:warning|advisory)(?=: )"), {"fg": "yellow"}),
    (re.compile(r"\[[a-z]+(?:-[a-z]+)+\]$", re.MULTILINE), {"dim": True}),
    (re.compile(r"^ +help:", re.MULTILINE), {"fg": "cyan"}),
)
"""The colours in a report of faults. The text is the same with and without."""


def _coloured(text: str, stream: IO[str]) -> str:
    if is_coloured(stream):
        for pattern, style in _STYLES:
            text = pattern.sub(lambda found, style=style: click.style(found.group(), **style), text)  # type: ignore[misc]
    return text


@dataclass(frozen=True, slots=True)
class _Printable:
    """A renderable of rich whose text has its control characters escaped."""

    drawn: Any

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        for segment in console.render(self.drawn, options):
            yield segment._replace(text=printable(segment.text, keep="\n"))


def _drawn(renderable: Any) -> str:
    """Render with rich: coloured and as wide as a terminal, or plain and unwrapped for programs."""
    from rich.console import Console  # noqa: PLC0415 - most commands do not need rich

    console = Console(
        file=sys.stdout,
        width=None if is_terminal(sys.stdout) else _UNLIMITED,
        force_terminal=is_coloured(sys.stdout),
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as capture:
        console.print(_Printable(renderable))
    # rich fills the cells of the last column with spaces, up to the width of the table.
    return "\n".join(line.rstrip() for line in capture.get().rstrip("\n").split("\n"))


def _write(stream: IO[str], text: str, *, coloured: bool = False, nl: bool = True) -> None:
    """Write text with its control characters escaped: it may contain names of files and other foreign text."""
    text = printable(text, keep="\n\t")
    _print(stream, _coloured(text, stream) if coloured else text, nl=nl)


def _print(stream: IO[str], text: str, *, nl: bool = True) -> None:
    """Write text as it is, with escapes for what the encoding of the stream does not have, as in the locale C."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    _put(stream, lambda: click.echo(shown, file=stream, nl=nl, color=is_coloured(stream)))


def _put(stream: IO[str], write: Callable[[], None]) -> None:
    """Write to the stream; ignore a closed pipe, and any failure on stderr; raise if stdout cannot be written."""
    try:
        write()
    except OSError as refused:
        let_go(stream)
        if stream is sys.stdout and refused.errno != errno.EPIPE:
            raise unwritable(refused) from refused


def unwritable(refused: OSError) -> RunFailure:
    """Convert an error of the system into a failure."""
    why = refused.strerror or str(refused)
    return RunFailure(
        f"the result cannot be written: {why}", "free some space there, or send it elsewhere", code="result-unwritable"
    )


def open_closed_streams() -> None:
    """Discard what goes to a standard stream that the caller closed, as `>&-` does.

    Otherwise a file that is opened later, such as one of the ledger, gets its number, and so what libraries print.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # It gets the lowest free number, which is that of the stream.
            stream = Path(os.devnull).open(mode)  # noqa: SIM115 - it stays open
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def let_go(stream: IO[str]) -> None:
    """Discard everything written to the stream from now on, also what Python has buffered."""
    # Python flushes again at its end, and would raise again. A stream in memory, as in tests, has no file.
    with contextlib.suppress(OSError, io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def severity_counts(diagnostics: Sequence[Diagnostic]) -> str:
    """`1 warning, 2 advisories`, or an empty text."""
    plural = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.ADVISORY: "advisories"}
    counts = {severity: sum(d.severity is severity for d in diagnostics) for severity in Severity}
    return ", ".join(
        f"{count} {severity if count == 1 else plural[severity]}" for severity, count in counts.items() if count
    )
