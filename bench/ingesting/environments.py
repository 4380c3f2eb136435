"""Where contestants run: in the environment of dagkit, or in one that is made for them at first use.

Peers get environments of their own, so that none of them holds another's dependencies back, and dagkit's stays as it
is. They are kept in $DAGKIT_BENCH_VENV, else under the user's cache.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class Unavailable(Exception):
    """A contestant cannot be had; says what would bring it."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Packages that are installed together, apart from all others; the environment of dagkit where there are none."""

    name: str
    requirements: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where it is kept; another Python needs another."""
        return cache_folder() / f"{self.name}-{sys.implementation.cache_tag}"

    @property
    def python(self) -> Path:
        """The interpreter that has these packages, once they are there."""
        return self.folder / "bin" / "python" if self.requirements else Path(sys.executable)

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """What makes it."""
        pip = (str(self.python), "-m", "pip", "--disable-pip-version-check")
        install = (*pip, "install", "--quiet", *self.requirements)
        return (sys.executable, "-m", "venv", "--clear", str(self.folder)), install

    def make(self, say: Callable[[str], None]) -> None:
        """The environment is there, and holds what is asked for now."""
        made, wanted = self.folder / "requirements.txt", "\n".join(self.requirements)
        if self.requirements and not (made.exists() and made.read_text(encoding="utf-8") == wanted):
            say(f"making an environment for {', '.join(self.requirements)}")
            for command in self.commands:
                self._run(command)
            made.write_text(wanted, encoding="utf-8")

    def _run(self, command: tuple[str, ...]) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)  # noqa: S603
            failed, why = done.returncode != 0, (done.stderr or done.stdout).strip()
        except (OSError, subprocess.TimeoutExpired) as fault:
            failed, why = True, str(fault)
        if failed:
            how = " && ".join(shlex.join(each) for each in self.commands)
            raise Unavailable(f"{', '.join(self.requirements)} cannot be installed; try: {how}\n{why}")


def cache_folder() -> Path:
    """Where environments are kept, and where files on a disk are written if nobody says where."""
    named = os.environ.get("DAGKIT_BENCH_VENV")
    return Path(named) if named else Path.home() / ".cache" / "dagkit-bench"


OWN = Environment("own")
PEERS = Environment("peers", ("polars>=2", "duckdb>=1.3", "bytewax>=0.21"))
BEAM = Environment("beam", ("apache-beam>=2.77",))
