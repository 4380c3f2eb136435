"""Running what documents show: each document in a module and a directory of its own."""

import contextlib
import functools
import io
import itertools
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from dagkit import launching
from dagkit.api.attributes import Attribute, DagContext
from dagkit.engine.program.program import Program
from dagkit.engine.work import summary
from tests.docs.fences import ROOT, Fence
from tests.old_files import aged

_VARIABLE = re.compile(r"[A-Z_]+=")
SERVICES = {
    "localhost:5432": ("postgres", "address"),
    "localhost:6379": ("redis", "address"),
    "localhost:5672": ("rabbitmq", "address"),
    "localhost:9092": ("kafka", "address"),
    "localhost:9093": ("kafka", "login_address"),
}
"""The addresses in documents of servers that tests run elsewhere: the fixture that runs each, and its attribute."""
_COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)
_TOPIC = re.compile(r'NewTopic\("(\w+)"')


def lengthen_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let windows whose length no program sets last a minute if their work takes so long."""
    setting = DagContext.STREAMING_WINDOW_SIZE_MILLIS
    of_application = summary.of_application

    def lengthened(program: Program, attribute: Attribute[int]) -> int:
        is_set = any(setting.qualified in context.attributes for context in program.contexts.values())
        return 60_000 if attribute is setting and not is_set else of_application(program, attribute)

    monkeypatch.setattr(summary, "of_application", lengthened)


class Room:
    """Where one document runs: a fresh directory with the applications in it, and one module for its programs."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, running: Callable[[str], object]) -> None:
        self.directory = directory
        self._running = running
        shutil.copytree(ROOT / "apps", directory / "apps", ignore=shutil.ignore_patterns("__pycache__"))
        self.module = ModuleType("example")
        monkeypatch.setitem(sys.modules, "example", self.module)
        monkeypatch.chdir(directory)
        monkeypatch.syspath_prepend(directory)
        monkeypatch.setenv("HOME", str(directory))
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setattr(launching, "launch", self._launching_at_once(launching.launch))

    def run(self, fence: Fence) -> str:
        """Run a program, and give back what it prints."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(self._served(fence.in_place), fence.document, "exec"), vars(self.module))  # noqa: S102 - it is our own
        return printed.getvalue()

    def _served(self, text: str) -> str:
        """A program with the addresses of the servers that tests run.

        Its clients may outlive the server: what they log then would follow the summary of the tests.
        """
        text = text.replace('{"bootstrap.servers"', '{"log_level": 0, "bootstrap.servers"')
        for shown, (service, address) in SERVICES.items():
            if shown in text:
                server: Any = self._running(service)
                for topic in _TOPIC.findall(text):  # the first try of a test may have left it
                    server.delete(topic, missing_ok=True)
                text = text.replace(shown, getattr(server, address))
        return text

    def keep(self, fence: Fence) -> None:
        """Write a fence with a file's name to that file."""
        assert fence.file_name is not None, "only fences with a file's name are files"
        (self.directory / fence.file_name).write_text(self._served(fence.text), encoding="utf-8")

    def type_in(self, fence: Fence) -> str:
        """The console fence as it reads when each of its commands is run now."""
        wanted = int(fence.info.rpartition(" ")[2]) if "exits" in fence.info else 0
        return "".join(f"$ {line}\n{self._answer(line, wanted)}" for line in _COMMAND.findall(fence.text))

    def _answer(self, line: str, wanted: int) -> str:
        """What the command prints; after `> NAME` its result goes to that file."""
        from dagkit.cli import main  # noqa: PLC0415 - a document without a console does not wait for it

        command, _, kept_in = line.partition(" > ")
        words = shlex.split(command)
        variables = dict(word.split("=", 1) for word in itertools.takewhile(_VARIABLE.match, words))
        program, *arguments = words[len(variables) :]
        assert program == "dagkit", f"a console fence shows commands of dagkit, unlike {line!r}"
        self._wait_as_a_reader()
        answer = CliRunner(env=variables).invoke(main, arguments, catch_exceptions=False)
        assert answer.exit_code == wanted, f"{line} ends with {answer.exit_code}:\n{answer.output}"
        if not kept_in:
            return answer.output
        (self.directory / kept_in).write_text(answer.stdout, encoding="utf-8")
        return answer.stderr

    def _launching_at_once(self, launch: Callable[..., Any]) -> Callable[..., Any]:
        """The function that programs launch with, which takes the files that they wrote for old ones."""

        @functools.wraps(launch)
        def at_once(*given: Any, **named: Any) -> Any:
            self._wait_as_a_reader()
            return launch(*given, **named)

        return at_once

    def _wait_as_a_reader(self) -> None:
        """Age the files of earlier steps: a reader takes more time between two steps than a launch waits for a file."""
        for path in self.directory.rglob("[!.]*"):
            is_hidden = any(part.startswith(".") for part in path.relative_to(self.directory).parts)
            if not is_hidden and path.is_file() and time.time() - path.stat().st_mtime < 2:
                aged(path)


@contextlib.contextmanager
def forgetting_modules(directory: Path) -> Iterator[None]:
    """Modules that the directory made importable do not outlive the block."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(directory)):
            del sys.modules[name]


def defined_last(module: ModuleType, before: Mapping[str, object]) -> Sequence[object]:
    """What a program defined, in the order of its lines; what stood there before and was not touched is left out."""
    return [value for name, value in vars(module).items() if before.get(name, module) is not value]
