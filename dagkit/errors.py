"""Diagnostics and exceptions.

A fault in an application or its configuration is a `Diagnostic`: one exception carries all that the rules find. A
fault of a run is an exception. Every exception has the exit code of the command that fails with it.

    DagkitError
    ├── ApplicationFaults        the application or its configuration is wrong; carries every diagnostic
    │   ├── ChangeRefused        a change of an application has faults, and was not made
    │   └── ConfigurationFaults  … and all of it is configuration
    └── RunFailure               a failure outside of compiling: its code, problem, help and scene
        ├── ApplicationNotFound  nothing to compile where the user pointed
        ├── DrawingFailed        no installed program can draw the format asked for
        ├── InputUnreadable      an input of an operator does not exist, or may not be read
        └── …                    a class of its own only where a caller catches it; else a function returns a RunFailure
"""

import difflib
import errno
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Literal, Protocol, get_args

Code = Literal[
    # what populate_dag wrote
    "application-empty",
    "populate-failed",
    "name-missing",
    "name-malformed",
    "operator-duplicated",
    "operator-reused",
    "operator-unknown",
    "stream-duplicated",
    "stream-unfed",
    "stream-unread",
    "stream-reversed",
    "port-unknown",
    "port-taken",
    "port-hidden",
    "port-unexposed",
    "port-type-mismatch",
    "port-schema-missing",
    "input-unconnected",
    "input-unhandled",
    "method-undefined",
    "handler-mismatched",
    "output-unconnected",
    "wiring-ambiguous",
    "kind-duplicated",
    "restriction-unwritable",
    "restriction-untracked",
    "state-invalid",
    # the shape of the graph
    "operator-unreached",
    "root-not-input",
    "root-fed",
    "loop-undelayed",
    "delay-misplaced",
    # properties and attributes
    "property-invalid",
    "property-unknown",
    "guarantee-waived",
    "attribute-invalid",
    "attribute-misplaced",
    "attribute-unpicklable",
    "attribute-stranded",
    "attribute-advisory",
    # partitions, windows, places
    "partition-forbidden",
    "partition-invalid",
    "partition-unkeyed",
    "state-unkeyed",
    "parallel-unrelated",
    "parallel-count-mismatch",
    "parallel-rekeyed",
    "window-divided",
    "checkpoint-misaligned",
    "mode-mismatch",
    "windows-apart",
    "watermark-missing",
    "locality-invalid",
    "locality-ignored",
    "affinity-invalid",
    "affinity-conflicting",
    "affinity-ignored",
    "output-read",
    "output-shared",
    "file-doubled",
    # property files
    "file-unreadable",
    "key-malformed",
    "key-unmatched",
    "key-duplicated",
    "key-final",
    "key-required",
    "reference-unresolved",
    "class-not-found",
]

CODES: tuple[Code, ...] = get_args(Code)

RunCode = Literal[
    # finding and starting
    "application-missing",
    "plan-unreadable",
    "drawing-failed",
    "picture-unwritable",
    "result-unwritable",
    "input-unreadable",
    "folder-refused",
    "driver-runs",
    "master-invalid",
    "java-missing",
    "spark-unavailable",
    "spark-incomplete",
    "workers-unprepared",
    "session-mismatched",
    "python-mismatched",
    "address-taken",
    # operators at work
    "operator-failed",
    "worker-failed",
    "worker-died",
    "record-fatal",
    "window-lost",
    "spark-failed",
    "spark-ended",
    "metric-invalid",
    "item-unwritable",
    "control-undeclared",
    "key-unroutable",
    "item-unyielded",
    "item-rejected",
    "rows-unbalanced",
    "codec-failed",
    "parts-mismatched",
    "truncation-invalid",
    "restriction-invalid",
    # trackers at work
    "range-invalid",
    "fraction-invalid",
    "position-unmeasured",
    "position-outside",
    "claim-before-start",
    "claim-backwards",
    "split-point-missing",
    "work-unclaimed",
    "progress-invalid",
    "delay-invalid",
    "watermark-invalid",
    # files that are read
    "file-changed",
    "line-too-long",
    "line-rejected",
    "text-undecodable",
    "entity-empty",
    "entity-overlong",
    "block-indivisible",
    "compression-broken",
    "compressed-block",
    "columns-mismatched",
    "avro-broken",
    "parquet-broken",
    # topics
    "library-missing",
    "topic-missing",
    "kafka-refused",
    "offsets-removed",
    "transaction-fenced",
    "write-refused",
    "queue-refused",
    # databases
    "database-refused",
    "table-mismatched",
    "row-refused",
    # resuming
    "application-mismatched",
    "operator-renamed",
    "reader-replaced",
    "work-stranded",
    "items-stranded",
    "state-stranded",
    "discovery-stranded",
    "discovery-unfinished",
    "element-unreadable",
    "restriction-unreadable",
    "state-unreadable",
    "state-unwritable",
    "checkpoint-unwritable",
    # files
    "staging-failed",
    "begin-unnoted",
    "file-shared",
    "file-rewritten",
    "file-blocked",
    "piece-late",
    "pieces-unseen",
    "pieces-lost",
    "file-unplaced",
    "system-unavailable",
    "delivery-failed",
    "entries-stranded",
    # DataFrames of Spark
    "options-invalid",
    "output-unproven",
    "row-unfit",
    "element-unfinished",
    "columns-uncarried",
    "snapshot-lost",
    "checkpoint-unreadable",
    "adoption-refused",
    # asking a run
    "request-refused",
    "request-unanswered",
    "restart-refused",
    "restart-unfinished",
    "replay-refused",
    "decision-missing",
    # a warm driver
    "serve-failed",
    "warm-driver-ended",
]

RUN_CODES: tuple[RunCode, ...] = get_args(RunCode)

_BY_EXIT_CODE: Mapping[int, tuple[RunCode, ...]] = {
    2: ("master-invalid", "session-mismatched"),
    3: ("replay-refused", "request-refused", "restart-refused", "restart-unfinished"),
    5: (
        *("address-taken", "drawing-failed", "folder-refused", "input-unreadable", "java-missing", "kafka-refused"),
        *("library-missing", "picture-unwritable", "python-mismatched", "queue-refused", "result-unwritable"),
        *("serve-failed", "spark-incomplete", "topic-missing", "workers-unprepared"),
    ),
    6: ("application-missing", "decision-missing", "plan-unreadable"),
    8: ("request-unanswered",),
    9: ("spark-ended", "spark-unavailable", "warm-driver-ended"),
    11: ("driver-runs",),
}
EXIT_CODES: Mapping[RunCode, int] = dict.fromkeys(RUN_CODES, 7) | {
    code: exit_code for exit_code, codes in _BY_EXIT_CODE.items() for code in codes
}
"""The exit code of a command that fails, by the code of its error."""


class Severity(StrEnum):
    """How much a diagnostic matters: an error stops the compiler, the others are only reported."""

    ERROR = "error"
    WARNING = "warning"
    ADVISORY = "advisory"


@dataclass(frozen=True, slots=True)
class Where:
    """A line of an application, of a property file, or of the command line."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        file = printable(self.file)
        return file if self.line is None else f"{file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault, in the author's names, with a repair to try."""

    code: Code
    problem: str
    help: str
    where: Where | None = None
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        label = "" if self.severity is Severity.ERROR else f"{self.severity}: "
        return f"{place}{label}{self.problem} [{self.code}]\n  help: {self.help}"


class DagkitError(Exception):
    """The root of all exceptions that dagkit raises on purpose; `exit_code` is that of a command that fails with it."""

    exit_code: int = 1

    @property
    def explained(self) -> "Explained | None":
        """The code, problem and help of the error; None if it has no code of its own."""
        return None


class Explained(Protocol):
    """An error, or one of several that it carries, with a code that docs/errors.md explains."""

    @property
    def code(self) -> str: ...
    @property
    def problem(self) -> str: ...
    @property
    def help(self) -> str: ...


class ApplicationFaults(DagkitError):
    """The application cannot be compiled; `diagnostics` holds every fault found, warnings included."""

    exit_code = 3
    verdict: ClassVar[str] = "cannot be compiled"

    def __init__(self, application: str, diagnostics: Sequence[Diagnostic]) -> None:
        self.application = application
        self.diagnostics = tuple(diagnostics)
        super().__init__(report(application, self.diagnostics, self.verdict))

    @property
    def codes(self) -> tuple[Code, ...]:
        """The codes of the errors, in the order in which they are reported."""
        return tuple(d.code for d in self.diagnostics if d.severity is Severity.ERROR)

    # By default, pickle would call the class with `args`, which hold only the report.
    def __reduce__(self) -> tuple[type["ApplicationFaults"], tuple[str, tuple[Diagnostic, ...]]]:
        return type(self), (self.application, self.diagnostics)


class ConfigurationFaults(ApplicationFaults):
    """Every error is in the configuration; the application itself may be correct."""

    exit_code = 4


class ChangeRefused(ApplicationFaults):
    """A change of the application has faults, and was not made; a running application continues without it."""

    verdict: ClassVar[str] = "was not changed"


@dataclass(frozen=True, slots=True)
class Scene:
    """Where in a run something failed. Unknown parts are None."""

    operator: str | None = None
    window: int | None = None
    slot: int | None = None
    source: str | None = None
    """The source that was read, by its name in the ledger."""
    position: int | None = None


class RunFailure(DagkitError):
    """A failure outside of compiling: its problem, its help, and its scene.

    `code` is one of RUN_CODES, and docs/errors.md has a heading for it. A subclass has its code, a function that
    returns a RunFailure gives it. A failure travels between processes with all of its fields.
    """

    code: RunCode
    usual_help: ClassVar[str] = ""
    """The help, unless the code that raises it gives another."""
    caused_by_author: bool = False
    """Whether the author's code caused it: the report of an operator then shows the author's lines, and the record."""

    def __init__(
        self,
        problem: str,
        help: str = "",  # noqa: A002 - frozen
        scene: Scene = Scene(),
        *,
        code: RunCode | None = None,
        caused_by_author: bool | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.help = help or self.usual_help
        self.scene = scene
        if code is not None:
            self.code = code
        if caused_by_author is not None:
            self.caused_by_author = caused_by_author
        self.exit_code = EXIT_CODES[self.code]

    @property
    def named(self) -> str:
        """What reports of an operator call it: its class, or the words of its code if it has no class of its own."""
        own = type(self)
        return "".join(map(str.capitalize, self.code.split("-"))) if own is RunFailure else own.__name__

    @property
    def explained(self) -> Explained:
        return self

    def __str__(self) -> str:
        line, rest, more = self.problem.partition("\n")
        shown = f"{line} [{self.code}]{rest}{more}"
        return f"{shown}\n  help: {self.help}" if self.help else shown

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, dict(self.__dict__))


def _restored(kind: type[RunFailure], args: tuple[Any, ...], fields: dict[str, Any]) -> RunFailure:
    """A failure as it was pickled, whatever its constructor takes."""
    failure = kind.__new__(kind)
    failure.args = args
    failure.__dict__.update(fields)
    return failure


class ApplicationNotFound(RunFailure):
    """There is no application where the user pointed."""

    code = "application-missing"


def plan_unreadable(problem: str, remedy: str) -> RunFailure:
    """The file is not a plan, or one of a version that this dagkit cannot read."""
    return RunFailure(problem, remedy, code="plan-unreadable")


class DrawingFailed(RunFailure):
    """No installed program can draw the format asked for."""

    code = "drawing-failed"


def address_taken(what: str, option: str, address: str, port: int, error: OSError) -> RunFailure:
    """The metrics or the console cannot be served at the requested address.

    `option` is the command-line option that sets the port.
    """
    taken = error.errno == errno.EADDRINUSE
    why = "another process uses this port" if taken else reason_of(error)
    return RunFailure(
        f"{what} cannot be served at {address}:{port}: {why}",
        f"choose another port with {option} (0: any free one)" + ("" if taken else ", or an address of this machine"),
        code="address-taken",
    )


class InputUnreadable(RunFailure):
    """An input that an operator is to read does not exist, or may not be read.

    The problem begins with "cannot read", and names the place and the reason. It needs no traceback.
    """

    code = "input-unreadable"
    usual_help = "make it readable, then launch again"


def library_missing(library: str, extra: str, *, on_workers: bool = False) -> RunFailure:
    """A library that an extra of dagkit brings is not installed."""
    where = ", on each machine that runs workers, too" if on_workers else ""
    return RunFailure(
        f"the library {library} is not installed", f"run: pip install 'dagkit[{extra}]'{where}", code="library-missing"
    )


_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move the cursor or change colours or text direction, and bytes of names that are not UTF-8."""
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def printable(text: str, *, keep: str = "") -> str:
    """Text with its control characters as escapes, `\\u001b` for ESC, so that a name cannot write to a terminal.

    The escapes are those of JSON, so a line of JSON stays valid. Characters in `keep` stay.
    """

    def escape(found: re.Match[str]) -> str:
        character = found.group()
        return character if character in keep else _SHORT.get(character) or f"\\u{ord(character):04x}"

    return _CONTROLS.sub(escape, text)


def errors_among(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics that stop the compiler."""
    return tuple(d for d in diagnostics if d.severity is Severity.ERROR)


def report(application: str, diagnostics: Sequence[Diagnostic], verdict: str = "cannot be compiled") -> str:
    """The report for people: a headline, then each fault with its help."""
    errors = errors_among(diagnostics)
    count = f"{len(errors)} problem{'' if len(errors) == 1 else 's'}"
    headline = f"{application} {verdict}: {count}" if errors else f"{application} compiles"
    return "\n".join([headline, *("  " + str(d).replace("\n", "\n  ") for d in diagnostics)])


def reason_of(error: BaseException) -> str:
    """The words of an error with the paths that it names, without the system's number of it."""
    number = f"[Errno {getattr(error, 'errno', None)}] "
    return str(error).removeprefix(number)


def near(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar; None if none is similar."""
    # Reversed: of names that differ in case only, the first one is suggested.
    by_folded = {candidate.casefold(): candidate for candidate in reversed(list(dict.fromkeys(known)))}
    found = difflib.get_close_matches(name.casefold(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


_MOST_NAMED = 12
"""The most known names that a message lists."""


def clipped(value: object, most: int = 80) -> str:
    """The value as Python writes it. What goes beyond `most` characters becomes an ellipsis."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The most similar known name as a question; if none is similar, `otherwise` or a list of the known names."""
    candidates = list(dict.fromkeys(known))
    meant = near(name, candidates)
    if meant is not None:
        return f"did you mean {meant!r}?"
    if otherwise:
        return otherwise
    if not candidates:
        return "none exist here"
    more = f" and {len(candidates) - _MOST_NAMED} more" if len(candidates) > _MOST_NAMED else ""
    return f"known here: {', '.join(map(repr, candidates[:_MOST_NAMED]))}{more}"
