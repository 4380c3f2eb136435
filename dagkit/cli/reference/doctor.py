"""`dagkit doctor`: check what dagkit needs on this machine, and say what to do."""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import rich_click as click
from click.exceptions import Exit

from dagkit.backends.spark.java import JavaNotFound, ensure_java
from dagkit.cli.application.about import about
from dagkit.cli.application.options import spoken
from dagkit.cli.terminal.amounts import in_bytes
from dagkit.cli.terminal.output import Output
from dagkit.errors import DagkitError, printable
from dagkit.launching import HOME
from dagkit.ledger.stores import KeyTaken, open_store
from dagkit.urls import absolute, is_url

LEAST_SPACE = 1_000_000_000
MOST_SKEW = timedelta(seconds=2)
"""The largest difference between the clocks of this machine and of the storage that raises no alarm."""
LACKING = 5
"""The exit code if something is missing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    check: str
    ok: bool
    found: str
    help: str = ""
    """What to do if it is not OK."""


@click.command()
@click.option("--path", metavar="FOLDER", default=HOME, help="The folder of applications to check; default .dagkit.")
@spoken
def doctor(*, path: str, output: Output) -> None:
    """Check what dagkit needs on this machine, and say what to do about each problem.

    It writes a small file into the folder of applications and deletes it. It exits with 5 if a check fails.
    """
    findings = list(_findings(path))
    if output.as_json:
        output.document("dagkit.doctor/1", {"findings": [asdict(finding) for finding in findings]})
    else:
        width = max(len(finding.check) for finding in findings)
        output.result("\n".join(_line(finding, width) for finding in findings))
    if not all(finding.ok for finding in findings):
        raise Exit(LACKING)


def _line(finding: Finding, width: int) -> str:
    line = f"{finding.check.ljust(width)}  {'OK  ' if finding.ok else 'FAIL'}  {printable(finding.found)}"
    return line if finding.ok else f"{line}\n{' ' * width}  help: {finding.help}"


def _findings(path: str) -> Iterator[Finding]:
    yield from _versions()
    yield java()
    yield workers_python()
    yield from storage(path)
    folders = (
        {"temporary files": tempfile.gettempdir()}
        if is_url(path)
        else {
            "applications": absolute(path),
            "temporary files": tempfile.gettempdir(),
        }
    )
    for name, folder in folders.items():
        yield space(name, Path(folder))


def _versions() -> Iterator[Finding]:
    """The lines of `dagkit --version`; the library without compiled C fails."""
    for line in about():
        compiled = "byte scanning" not in line or "compiled C" in line
        yield Finding(
            "compiled C" if "byte scanning" in line else "versions",
            compiled,
            line,
            "install gcc and libc6-dev, then install dagkit again: bytes are scanned slower by numpy",
        )


def java() -> Finding:
    """Whether there is a Java that Spark can start."""
    try:
        return Finding("Java", ok=True, found=str(ensure_java()))
    except JavaNotFound as missing:
        return Finding("Java", ok=False, found=missing.problem, help=f"{missing.help}; --reference runs without Java")


def workers_python(environment: Callable[[str], str | None] = os.environ.get) -> Finding:
    """Whether the Python of Spark's workers is of the same version as this one."""
    program = environment("PYSPARK_PYTHON") or sys.executable
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        asked = subprocess.run([program, "-c", code], capture_output=True, text=True, check=True, timeout=20)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        return _other_python(f"{program} does not run: {error}")
    theirs = asked.stdout.strip()
    if theirs != own:
        return _other_python(f"{program} is Python {theirs}, this is {own}")
    return Finding("workers' Python", ok=True, found=f"{program}, {theirs}")


def _other_python(found: str) -> Finding:
    return Finding(
        "workers' Python", ok=False, found=found, help=f"unset PYSPARK_PYTHON, or set it to {sys.executable}"
    )


def storage(path: str) -> Iterator[Finding]:
    """Whether the folder's storage creates exclusively, as the ledger requires, and how its clock differs."""
    key = f".doctor-{secrets.token_hex(8)}"
    store = None
    try:
        store = open_store(absolute(path))
        began = time.monotonic()
        store.create(key, b"1")
        millis = (time.monotonic() - began) * 1000
        now = datetime.now(UTC)
        yield _exclusive(path, lambda: store.create(key, b"2"), millis)
        yield _clock(now, store.modified(key))
    except DagkitError as error:
        explained = error.explained
        help_ = explained.help if explained else "give a folder that can be written"
        yield Finding("storage", ok=False, found=explained.problem if explained else str(error), help=help_)
    finally:
        if store is not None:
            _delete(store.delete, key)


def _exclusive(path: str, create_again: Callable[[], None], millis: float) -> Finding:
    try:
        create_again()
    except KeyTaken:
        return Finding("storage", ok=True, found=f"{path}: creates exclusively, {millis:.0f} ms for a file")
    return Finding(
        "storage",
        ok=False,
        found=f"{path}: two writers can both create a file",
        help="keep the applications on a local disk, or in an object store with conditional writes",
    )


def _clock(now: datetime, written: datetime | None) -> Finding:
    skew = timedelta() if written is None else written - now
    ok = abs(skew) <= MOST_SKEW
    help_ = "set the clock of this machine, as by NTP: drivers of several hosts and file policies compare times"
    return Finding("clock", ok, f"{abs(skew.total_seconds()):.1f} s from that of the storage", help_)


def space(name: str, folder: Path) -> Finding:
    """Whether there is space for some output and staged files."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(there).free
    return Finding(
        f"space for {name}",
        free >= LEAST_SPACE,
        f"{in_bytes(free)} free in {there}",
        "free some space, or choose another folder",
    )


def _delete(delete: Callable[[list[str]], None], key: str) -> None:
    try:
        delete([key])
    except DagkitError:  # the storage failed before, which is reported
        return
