"""`dagkit doctor`: check what dagkit needs on this machine and on the workers of a cluster."""

import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import rich_click as click
from click.exceptions import Exit

from dagkit.api.application import HOME
from dagkit.backends.spark.failures.workers_python import PythonMismatched, check_python
from dagkit.backends.spark.session.java import JavaNotFound, ensure_java, version_of
from dagkit.backends.spark.window.machine_finding import Finding
from dagkit.cli.application.about import about
from dagkit.cli.application.opening import compiled
from dagkit.cli.application.operator_lookup import packages
from dagkit.cli.application.options import Asked, configured, spark_settings, spoken
from dagkit.cli.terminal.output import Output
from dagkit.compiler.steps import application_path
from dagkit.errors import DagkitError, printable
from dagkit.ground.amounts import in_bytes
from dagkit.ground.urls import absolute, is_url
from dagkit.ledger.stores import KeyTaken, open_store
from dagkit.runs.machine import Machine

LEAST_SPACE = 1_000_000_000
MOST_SKEW = timedelta(seconds=2)
"""The largest difference between the clocks of this machine and of the storage that raises no alarm."""
LACKING = 5
"""The exit code if something is missing."""


@click.command()
@click.argument("target", metavar="[APP]", type=click.Path(), required=False)
@click.option("--path", metavar="FOLDER", help="The folder whose storage is checked; default: that of APP, or .dagkit.")
@click.option("--master", metavar="URL", help="Check the workers of this Spark, too.")
@spark_settings
@configured
@spoken
def doctor(
    *,
    target: str | None,
    path: str | None,
    master: str | None,
    settings: tuple[tuple[str, str], ...],
    configuring: Callable[[str], Asked],
    output: Output,
) -> None:
    """Check what dagkit needs on this machine, and say what to do about each problem.

    With --master, start a session there, and check its workers. It writes small files into the folder of the
    application and deletes them. It exits with 5 if a check fails.
    """
    if settings and master is None:
        raise click.UsageError("--spark needs --master")
    if path is None:
        path = HOME if target is None else application_path(compiled(configuring(target), output))
    findings = list(_findings(path))
    if master is None:
        findings.append(workers_python())
    else:
        findings += workers(Machine(master=master, settings=dict(settings)), absolute(path))
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
    yield from storage(path)
    if not is_url(path):
        yield space("applications", Path(absolute(path)))
    yield space("temporary files", Path(tempfile.gettempdir()))


def _versions() -> Iterator[Finding]:
    """The lines of `dagkit --version`; the library without compiled C fails."""
    for line in about():
        # The function `about` of the operator library writes this line; without compiled C, the library works, but
        # slowly.
        is_about_scanning = "byte scanning" in line
        yield Finding(
            "compiled C" if is_about_scanning else "versions",
            not is_about_scanning or "compiled C" in line,
            line,
            "install gcc and libc6-dev, then install dagkit again: bytes are scanned slower by numpy",
        )


def java() -> Finding:
    """Whether there is a Java that Spark can start."""
    try:
        home = ensure_java()
        return Finding("Java", ok=True, found=f"{version_of(home)}, in {_real(home)}")
    except JavaNotFound as missing:
        return Finding("Java", ok=False, found=missing.problem, help=missing.help)


def _real(home: Path) -> Path:
    """The folder of Java itself: a Java that an extra brings is started by a script elsewhere."""
    release = home / "release"
    return release.resolve().parent if release.is_symlink() else home


def workers_python() -> Finding:
    """Whether the Python of Spark's workers is of the same version as this one."""
    program = os.environ.get("PYSPARK_PYTHON") or sys.executable
    try:
        check_python(program)
    except PythonMismatched as mismatched:
        return Finding("workers' Python", ok=False, found=mismatched.problem, help=mismatched.help)
    return Finding("workers' Python", ok=True, found=f"{program}, {sys.version_info.major}.{sys.version_info.minor}")


def workers(machine: Machine, path: str) -> list[Finding]:
    """What the workers of a Spark find about themselves, and whether they can use the storage of a folder."""
    from dagkit.backends.spark.window.preflight import examine  # noqa: PLC0415 - imports PySpark

    try:
        with _leaving_no_folder(path), machine.session() as session:
            return examine(session, path, packages())
    except DagkitError as error:
        explained = error.explained
        problem, help_ = (explained.problem, explained.help) if explained else (str(error), "see Spark's logs")
        return [Finding("Spark", ok=False, found=problem, help=help_)]


def storage(path: str) -> Iterator[Finding]:
    """Whether the folder's storage creates exclusively, as the ledger requires, and how its clock differs."""
    key = f".doctor-{secrets.token_hex(8)}"
    store = None
    with _leaving_no_folder(absolute(path)) as is_missing:
        try:
            store = open_store(absolute(path))
            began = time.monotonic()
            store.create(key, b"1")
            millis = (time.monotonic() - began) * 1000
            now = datetime.now(UTC)
            shown = f"{path}{' (not there yet)' * is_missing}"
            yield _exclusive(shown, lambda: store.create(key, b"2"), millis)
            yield _clock(now, store.modified(key))
        except DagkitError as error:
            explained = error.explained
            help_ = explained.help if explained else "give a folder that can be written"
            yield Finding("storage", ok=False, found=explained.problem if explained else str(error), help=help_)
        finally:
            if store is not None:
                with suppress(DagkitError):  # the storage failed before, which is reported
                    store.delete([key])


@contextmanager
def _leaving_no_folder(path: str) -> Iterator[bool]:
    """Delete the folders that are made meanwhile on the way to a place. Yield whether any is missing."""
    place = Path(path)
    missing = [] if is_url(path) else [each for each in (place, *place.parents) if not each.exists()]
    try:
        yield bool(missing)
    finally:
        for folder in filter(Path.is_dir, missing):
            with suppress(OSError):  # another process, such as a launch, has begun to use it
                folder.rmdir()


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
