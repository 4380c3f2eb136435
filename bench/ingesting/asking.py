"""The process of a contestant, which answers questions."""

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bench.ingesting.contestants import Contestant

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 900
"""The longest allowed run."""
FAREWELL_SECONDS = 30
"""The time that a process has to end after its last question."""


class Wrong(Exception):
    """A contestant failed, or its output is wrong."""


@dataclass(frozen=True, slots=True)
class Asking:
    """The process of a contestant, which answers questions."""

    process: "subprocess.Popen[str]"
    stderr: IO[str]
    """The file with its stderr."""

    def ask(self, question: Mapping[str, str]) -> Mapping[str, Any]:
        """Its answer; raise `Wrong` with the last line of stderr if there is none."""
        questions, answers = self.process.stdin, self.process.stdout
        assert questions is not None, "questions go to the contestant's stdin"
        assert answers is not None, "answers come from the contestant's stdout"
        with suppress(BrokenPipeError):  # then there is no answer either
            questions.write(json.dumps(question) + "\n")
            questions.flush()
        if not select.select([answers], [], [], PATIENCE_SECONDS)[0]:
            self.process.kill()
            raise Wrong(f"it took longer than {PATIENCE_SECONDS} seconds")
        line = answers.readline()
        if not line:
            raise Wrong(self._last_words())
        answer: Mapping[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        self.process.wait(FAREWELL_SECONDS)
        self.stderr.seek(0)
        lines = [line.strip() for line in self.stderr if line.strip()]
        return lines[-1] if lines else "it ended without an answer"


@contextmanager
def process_of(contestant: Contestant, folder: Path) -> Iterator[Asking]:
    """The contestant's process, with a folder that is deleted at its end."""
    folder.mkdir()
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [str(contestant.environment.python), "-m", "bench.ingesting.serve", contestant.call, *contestant.packages]
    try:
        with (folder / "stderr").open("w+", encoding="utf-8", errors="replace") as stderr:
            process = subprocess.Popen(  # noqa: S603 - one of our own modules
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": paths, "SPARK_LOCAL_DIRS": str(folder)},
                start_new_session=True,
            )
            try:
                yield Asking(process, stderr)
            finally:
                _end(process)
    finally:
        shutil.rmtree(folder)


def _end(process: "subprocess.Popen[str]") -> None:
    """End the process and all its children; kill them if they do not end by themselves."""
    with suppress(BrokenPipeError, subprocess.TimeoutExpired):
        process.communicate(timeout=FAREWELL_SECONDS)
    for _ in range(FAREWELL_SECONDS * 10):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 0)
            time.sleep(0.1)
            continue
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
