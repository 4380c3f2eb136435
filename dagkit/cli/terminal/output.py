"""What a command prints: results and documents on stdout, messages and faults on stderr, in colour for people only."""

import contextlib
import errno
import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, NoReturn, Protocol

import rich_click as click
from click.exceptions import Exit

from dagkit.api.traces import author_lines
from dagkit.errors import ApplicationFaults, DagkitError, Diagnostic, RunFailure, Scene, Severity, printable
from dagkit.ledger import LedgerError

_UNLIMITED = 10_000
"""Columns of a page that nobody looks at: pipes and files get each row on one line."""


class ResultUnwritable(RunFailure):
    """The result cannot be written where it should go."""

    code = "result-unwritable"
    exit_code: ClassVar[int] = 5


class Interrupted(DagkitError):
    """Somebody wants no answer any more."""

    exit_code: ClassVar[int] = 130

    def __init__(self) -> None:
        super().__init__("interrupted")


class WrongUsage(DagkitError):
    """The command was called in a way that it does not have."""

    exit_code: ClassVar[int] = 2


class Tell(Protocol):
    """Takes an event with what there is to tell of it."""

    def __call__(self, event: str, told: Mapping[str, Any], *, level: str = "info") -> None: ...


@dataclass(frozen=True, slots=True)
class Output:
    """How this command was asked to speak."""

    as_json: bool = False
    verbosity: int = 0
    tell: Tell | None = None
    """Takes as events what else were told on stderr, where that speaks in lines of JSON."""

    @property
    def quiet(self) -> bool:
        return self.verbosity < 0

    @property
    def verbose(self) -> bool:
        return self.verbosity > 0

    def result(self, *parts: Any) -> None:
        """Print what the command was asked for: text, or anything that rich can draw."""
        for part in parts:
            if isinstance(part, str):
                _write(sys.stdout, part)
            else:
                _print(sys.stdout, _drawn(part))

    def raw(self, data: bytes) -> None:
        """Print the result as these very bytes."""
        nl = not data.endswith(b"\n") and is_terminal(sys.stdout)
        _put(sys.stdout, lambda: click.echo(data, nl=nl))

    def document(self, schema: str, body: Mapping[str, Any]) -> None:
        """Print a JSON document that says which schema it follows."""
        _write(sys.stdout, json.dumps({"schema": schema, **body}, indent=2, ensure_ascii=False, default=str))

    def message(self, text: str) -> None:
        """Tell people something beside the result."""
        if self.tell is not None:
            self.tell("told", {"message": text})
        elif not self.quiet:
            _write(sys.stderr, text)

    def fault(self, text: str) -> None:
        """Tell a fault beside the result, to those who want it quiet, too."""
        _write(sys.stderr, text)

    def detail(self, text: str) -> None:
        """Tell it only to those who asked for more."""
        if self.verbose:
            _write(sys.stderr, text)

    def notes(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Tell the warnings and advisories of an application that compiles."""
        if self.tell is not None:
            for diagnostic in diagnostics:
                self.tell("diagnosed", diagnostic_fields(diagnostic), level="warning")
        elif diagnostics and not self.quiet:
            _write(sys.stderr, "\n".join(str(d) for d in diagnostics), coloured=True)

    def failure(self, failure: DagkitError) -> int:
        """Say what went wrong, and give back the exit code that goes with it."""
        if self.as_json:
            self.document("dagkit.failure/1", failure_fields(failure))
        self.complain(failure)
        return failure.exit_code

    def usage(self, wrong: click.UsageError) -> None:
        """Give the document of a command that was called wrongly; click tells people."""
        failure = WrongUsage(wrong.format_message())
        self.document("dagkit.failure/1", {**failure_fields(failure), "exit_code": wrong.exit_code})

    def end(self, failure: DagkitError) -> NoReturn:
        """End the command with a complaint beside the result that was printed already."""
        self.complain(failure)
        raise Exit(failure.exit_code)

    def complain(self, failure: DagkitError) -> None:
        """Say on stderr what went wrong, with the author's own lines where an exception came out of them."""
        if self.tell is not None:
            told = failure_fields(failure)
            application = told.pop("application")
            self.tell("stopped", {**told, **({"app": application} if application else {})}, level="error")
            return
        cause = failure.__cause__ if isinstance(failure, ApplicationFaults) else None
        lines = author_lines(cause) if cause is not None else []
        way = ["  the lines that led there:", *(f"    {line}" for line in lines)] if lines else []
        _write(sys.stderr, "\n".join([str(failure), *way]), coloured=True)


class LastResort(logging.Handler):
    """Writes warnings to stderr where the author set up no logging, as Python does, with control characters escaped."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        shown = copy(record)
        if isinstance(record.args, tuple):  # a line break in a name is escaped, and one in the message is not
            shown.args = tuple(printable(each) if isinstance(each, str) else each for each in record.args)
        _write(sys.stderr, self.format(shown))


def failure_fields(failure: DagkitError) -> dict[str, Any]:
    """A failure as a JSON document shows it; what is not known of it is null."""
    faults = failure if isinstance(failure, ApplicationFaults) else None
    return {
        **_told_of(failure),
        "application": faults.application if faults else None,
        "message": str(failure).partition("\n")[0] if faults else str(failure),
        "exit_code": failure.exit_code,
        "diagnostics": [diagnostic_fields(d) for d in faults.diagnostics] if faults else [],
    }


def _told_of(failure: DagkitError) -> dict[str, Any]:
    """Its code, problem and help, and where in a run it happened."""
    told = failure.fault if isinstance(failure, LedgerError) else failure if isinstance(failure, RunFailure) else None
    scene = failure.scene if isinstance(failure, RunFailure) else Scene()
    return {
        "code": told.code if told else None,
        "problem": told.problem if told else None,
        "help": told.help if told else None,
        **asdict(scene),
    }


def diagnostic_fields(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic as JSON documents show it."""
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
    """Whether people sit at the far end."""
    return stream.isatty()


def is_coloured(stream: IO[str]) -> bool:
    """Whether this stream takes colours: NO_COLOR forbids them, FORCE_COLOR asks for them, else terminals do."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (is_terminal(stream) and os.environ.get("TERM") != "dumb")


def shown_path(path: Path) -> str:
    """The path as people wrote it: from the working directory where it lies below."""
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(absolute)


def counted(count: int, noun: str) -> str:
    """`1 stage`, `2 stages`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def shown_value(value: Any) -> str:
    """A value as it stands in documents, in one word: an object as its class with what it was made of."""
    if not isinstance(value, Mapping) or not isinstance(value.get("class"), str):
        return repr(value)
    parts = (f"{name}={shown_value(part)}" for name, part in value.items() if name != "class")
    return f"{value['class'].rpartition('.')[2]}({', '.join(parts)})"


_STYLES: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = (
    (re.compile(r"^\S.* cannot be compiled: .*$", re.MULTILINE), {"fg": "red", "bold": True}),
    (re.compile(r"(?<=: )(?:warning|advisory)(?=: )"), {"fg": "yellow"}),
    (re.compile(r"\[[a-z]+(?:-[a-z]+)+\]$", re.MULTILINE), {"dim": True}),
    (re.compile(r"^ +help:", re.MULTILINE), {"fg": "cyan"}),
)
"""What stands out in a report of faults. The words are the same with and without."""


def _coloured(text: str, stream: IO[str]) -> str:
    if is_coloured(stream):
        for pattern, style in _STYLES:
            text = pattern.sub(lambda found, style=style: click.style(found.group(), **style), text)  # type: ignore[misc]
    return text


@dataclass(frozen=True, slots=True)
class _Printable:
    """What rich draws, with the control characters of its text as escapes."""

    drawn: Any

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        for segment in console.render(self.drawn, options):
            yield segment._replace(text=printable(segment.text, keep="\n"))


def _drawn(renderable: Any) -> str:
    """What rich makes of it: coloured and as wide as the terminal for people, plain and unwrapped for programs."""
    from rich.console import Console  # noqa: PLC0415 - what speaks in one line does not need rich

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
    return "\n".join(line.rstrip() for line in capture.get().rstrip("\n").split("\n"))


def _write(stream: IO[str], text: str, *, coloured: bool = False) -> None:
    """Write text with its control characters as escapes: names of files and words of others come in it."""
    text = printable(text, keep="\n\t")
    _print(stream, _coloured(text, stream) if coloured else text)


def _print(stream: IO[str], text: str) -> None:
    """Write text as it is."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    _put(stream, lambda: click.echo(shown, file=stream, color=is_coloured(stream)))


def _put(stream: IO[str], write: Callable[[], None]) -> None:
    """Write to the stream. A reader who left early misses nothing; messages that nobody can read are let go."""
    try:
        write()
    except OSError as refused:
        let_go(stream)
        if stream is sys.stdout and refused.errno != errno.EPIPE:
            raise unwritable(refused) from refused


def unwritable(refused: OSError) -> ResultUnwritable:
    """What the system refused to write, as a failure that says so in a line."""
    told = refused.strerror or str(refused)
    return ResultUnwritable(f"the result cannot be written: {told}", "free some space there, or send it elsewhere")


def let_go(stream: IO[str]) -> None:
    """From now on nothing that is written here goes anywhere, not even what Python still holds back until its end."""
    with contextlib.suppress(OSError, io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def severity_counts(diagnostics: Sequence[Diagnostic]) -> str:
    """`1 warning, 2 advisories`, or nothing."""
    plural = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.ADVISORY: "advisories"}
    counts = {severity: sum(d.severity is severity for d in diagnostics) for severity in Severity}
    return ", ".join(
        f"{count} {severity if count == 1 else plural[severity]}" for severity, count in counts.items() if count
    )
