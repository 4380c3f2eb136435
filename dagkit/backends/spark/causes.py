"""Causes: what a worker's Python or Spark's Java raised, found in an error that holds the traces of both."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 500
"""How many characters of a cause an error message repeats."""
_TRACEBACK = "Traceback (most recent call last):"
_AFTER_PYTHON = re.compile(r"\s*$|\s*at |\t| ?SQLSTATE|PYTHONPATH was|(?:JVM|Driver) stacktrace")
"""How a line begins that comes after the words of a Python exception."""
_LOST_TASK = re.compile(r"Lost task [^(]*\(TID \d+\) \((?P<host>\S+) executor (?P<executor>[^)]+)\): (?P<words>.*)")
_CAUSED_BY = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
_CALLING = re.compile(r"An error occurred while calling [^\n]*\n(?:: )?")
_GRPC_DETAILS = re.compile(r'^\s*details = "(.*?)"?$', re.MULTILINE)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+.*")
_PACKAGE = re.compile(r"^(?:[\w$]+\.)+(?=[A-Z])")
_MISSING = re.compile(r"^(?:ModuleNotFoundError|ImportError): No module named '([^']+)'")

_SYMPTOMS = ("EOFException", "SocketException", "ClosedChannelException")
"""What Java raises when a worker at the other end of a connection has ended; the exception around it says so."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why Spark failed, in one line."""

    words: str
    """The type and the message of what was raised first."""
    host: str = ""
    """The host of the executor; empty for this process, or where Spark does not name one."""

    @property
    def missing_module(self) -> str:
        """The module that a worker could not import, if that is the cause."""
        found = _MISSING.match(self.words)
        return found[1] if found else ""

    def __str__(self) -> str:
        return f"{self.words} (on {self.host})" if self.host else self.words


def cause_of(error: BaseException) -> Cause:
    """The cause of an error that Spark, its gateway to Java, or its connection raised."""
    words = cause_in(f"{type(error).__name__}: {error}").words
    hosts = (cause_in(str(one)).host for one in _chain(error))
    return Cause(words, next(filter(None, hosts), ""))


def cause_in(text: str) -> Cause:
    """The cause in the text of an error, which begins with the error's type."""
    lost = _LOST_TASK.search(text)
    host = lost["host"] if lost is not None and lost["executor"] != "driver" else ""
    words = " ".join((_python_words(text) or _java_words(text)).split())
    return Cause(words if len(words) <= LONGEST else f"{words[:LONGEST]}…", host)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that it was raised from or after."""
    one: BaseException | None = error
    while one is not None:
        yield one
        one = one.__cause__ or one.__context__


def _python_words(text: str) -> str:
    """The last line of the last Python traceback, with what its message continues on; empty without a traceback."""
    before, found, after = text.rpartition(_TRACEBACK)
    if not found:
        return ""
    line = before.rpartition("\n")[2]
    indent = line if line.isspace() else ""
    lines = [line.removeprefix(indent) for line in after.splitlines()[1:]]
    first = next((at for at, line in enumerate(lines) if line and not line[0].isspace()), None)
    if first is None:
        return ""
    words = [_without_package(lines[first])]
    for line in lines[first + 1 :]:
        if _AFTER_PYTHON.match(line):
            break
        words.append(line)
    return " ".join(words)


def _java_words(text: str) -> str:
    """The innermost exception that has a message; the error itself, if Spark has a name in brackets for it."""
    kind, _, message = text.partition(": ")
    details = _GRPC_DETAILS.search(message)
    message = details[1] if details else _CALLING.sub("", message.lstrip())
    first = _SQLSTATE.sub("", message.lstrip().partition("\n")[0].strip())
    if not first or first.startswith("["):
        return f"{kind}: {first}" if first else kind
    outer = first if _LOST_TASK.search(first) or _PACKAGE.match(first) else f"{kind}: {first}"
    found = [_within_task(words) for words in (outer, *_CAUSED_BY.findall(message))]
    messages = [words for words in found if words.partition(": ")[2].strip()]
    causes = [words for words in messages if not words.startswith(_SYMPTOMS)]
    return (causes or messages or found)[-1]


def _within_task(words: str) -> str:
    """What a lost task failed with, if these are Spark's words on one."""
    lost = _LOST_TASK.search(words)
    return _without_package(lost["words"] if lost else words)


def _without_package(words: str) -> str:
    return _PACKAGE.sub("", words)
