"""The preflight: one Spark job shows what the workers of a cluster have, before the first window needs it."""

import importlib.metadata
import json
import operator
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from dagkit.backends.spark.failures.jobs import is_connect
from dagkit.backends.spark.failures.spark_errors import spark_errors
from dagkit.backends.spark.window.artifacts import ship_own_code
from dagkit.backends.spark.window.cores import CoresOf
from dagkit.backends.spark.window.machine_finding import Finding
from dagkit.backends.spark.window.worker_facts import ANSWERED_WITHIN_SECONDS, PACKAGES, UNKNOWN, Facts, Visit, about
from dagkit.engine.files.folders import Folder, folder_at
from dagkit.errors import RunFailure
from dagkit.ground.clock import patient

LEAST_SPACE = 1_000_000_000
MOST_SKEW_SECONDS = 2.0
"""The largest difference between two clocks that raises no alarm."""
MOST_TASKS = 256
TASKS_EACH = 2
"""Tasks for each core, so that few workers get none."""
_DRIVERS = "driver"
"""The name of the file that the driver writes."""
_SHIP = "or send an environment with --spark spark.archives=FILE#NAME"


def workers_unprepared(failed: Sequence[Finding]) -> RunFailure:
    """Workers lack what every application needs; nothing was read or written."""
    return RunFailure(
        f"Spark's workers cannot run dagkit: {'; '.join(finding.found for finding in failed)}",
        "; ".join(dict.fromkeys(finding.help for finding in failed)),
        code="workers-unprepared",
    )


@dataclass(frozen=True, slots=True)
class Answers:
    """What the workers found, between two times of the driver's clock."""

    facts: tuple[Facts, ...]
    began: float
    ended: float


def examine(spark: SparkSession, application_path: str, libraries: Sequence[str]) -> list[Finding]:
    """Every check of the workers, for `dagkit doctor`."""
    with spark_errors("Spark's workers do not answer", spark):
        ship_own_code(spark)
        answers = ask(spark, TASKS_EACH * CoresOf(spark).count().now, application_path, libraries)
    return [*check(answers.facts), *check_more(answers)]


def ask(spark: SparkSession, tasks: int, application_path: str, libraries: Sequence[str] = ()) -> Answers:
    """Let tasks find the facts of their workers."""
    name = f".preflight-{secrets.token_hex(8)}"
    with _shared_folder(folder_at(application_path).below(name)) as folder:
        visit = Visit(application_path, name, _DRIVERS, tuple(libraries), patient(ANSWERED_WITHIN_SECONDS))
        began = time.time()
        facts = [Facts(**json.loads(text)) for text in _run(spark, visit, min(tasks, MOST_TASKS))]
        ended = time.time()
        return Answers(tuple(_seen_here(each, folder) for each in facts), began, ended)


def _run(spark: SparkSession, visit: Visit, tasks: int) -> list[str]:
    """The answers of the tasks."""
    # Not a frame where there is a choice: without one, workers need no pyarrow to report that it is missing.
    if is_connect(spark):
        answers = spark.range(0, tasks, 1, tasks).mapInArrow(visit, "facts string").toArrow()
        return list(map(str, answers.column("facts").to_pylist()))
    return spark.sparkContext.parallelize(range(tasks), tasks).map(visit.facts).collect()


@contextmanager
def _shared_folder(folder: Folder) -> Iterator[Folder]:
    """The folder with a file of the driver; it is removed at the end."""
    folder.make()
    try:
        with folder.create(_DRIVERS) as sink:
            sink.write(b"seen")
        yield folder
    finally:
        folder.remove()


def _seen_here(facts: Facts, folder: Folder) -> Facts:
    """The facts; a file of the worker that the driver does not see is a problem of the storage."""
    if facts.storage or not facts.file or folder.length(folder.path_of(facts.file)) is not None:
        return facts
    return replace(facts, storage="the driver does not see a file that the worker wrote")


def check(facts: Sequence[Facts]) -> list[Finding]:
    """The checks that decide whether a launch can begin: packages and storage."""
    asked = [each for each in facts if each.packages.keys() >= set(PACKAGES)]
    return [_packages(facts), *([_storage(asked)] if asked else [])]


def differing_libraries(facts: Sequence[Facts], libraries: Sequence[str]) -> str | None:
    """How libraries on workers differ from those of this process, such as in their compiled C; None if they do not."""
    here = {about(library) for library in libraries}
    lines = [(line, each.host) for each in facts for line in each.libraries if line not in here]
    return f"workers differ from this machine: {_listed(lines)}" if lines else None


def check_more(answers: Answers) -> list[Finding]:
    """Further checks, for `dagkit doctor`: Python, clocks, free space and libraries."""
    return [_python(answers.facts), _clocks(answers), _space(answers.facts), *_libraries(answers.facts)]


def _python(facts: Sequence[Facts]) -> Finding:
    """The Python of the workers."""
    # Always OK: Spark refuses another minor version than the driver's before any task runs.
    return Finding("workers' Python", ok=True, found=_listed((each.python, each.host) for each in facts))


def _packages(facts: Sequence[Facts]) -> Finding:
    needed = {name: _needed(name) for name in PACKAGES}
    unfit = [
        (f"{name} is missing" if name not in each.packages else f"{name} is {each.packages[name]}", each.host)
        for name, bounds in needed.items()
        for each in facts
        if name not in each.packages or not fits(each.packages[name], bounds)
    ]
    listed = " ".join(
        f"'{name}{bounds}'" for name, bounds in needed.items() if any(name in found for found, _ in unfit)
    )
    there = ((", ".join(f"{name} {version}" for name, version in each.packages.items()), each.host) for each in facts)
    help_ = f"pip install {listed} for the Python of every worker, {_SHIP}"
    return Finding("workers' packages", not unfit, _listed(unfit or there), help_)


def _needed(package: str) -> str:
    """The versions of a package that this dagkit needs, such as `>=2.12,<3`; empty if it is not installed."""
    try:
        wanted = importlib.metadata.requires("dagkit") or ()
    except importlib.metadata.PackageNotFoundError:
        return ""
    return next((each.removeprefix(package) for each in wanted if re.match(rf"{package}[<>=]", each)), "")


def fits(version: str, bounds: str) -> bool:
    """Whether a version is within bounds such as `>=2.12,<3`; an unknown one is."""
    if version == UNKNOWN:
        return True
    compare = {">=": operator.ge, "<": operator.lt}
    return all(
        compare[sign](_numbers(version), _numbers(bound)) for sign, bound in re.findall(r"(>=|<)([\d.]+)", bounds)
    )


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _storage(facts: Sequence[Facts]) -> Finding:
    refused = [(each.storage, each.host) for each in facts if each.storage]
    return Finding(
        "workers' storage",
        not refused,
        _listed(refused or [("reads and writes the application's folder", each.host) for each in facts]),
        "use a folder that every worker sees by the same path, or a URL; give executors its credentials, as by --spark "
        "spark.executorEnv.NAME=VALUE, or by roles of their machines",
    )


def _clocks(answers: Answers) -> Finding:
    off = {each.host: max(answers.began - each.clock, each.clock - answers.ended, 0.0) for each in answers.facts}
    host, most = max(off.items(), key=lambda each: each[1])
    return Finding(
        "workers' clocks",
        most <= MOST_SKEW_SECONDS,
        f"{most:.1f} s from that of this machine" + (f" ({host})" if most else ""),
        "set the clocks of the workers, as by NTP",
    )


def _space(facts: Sequence[Facts]) -> Finding:
    least = min(facts, key=lambda each: each.free_bytes)
    return Finding(
        "workers' space",
        least.free_bytes >= LEAST_SPACE,
        f"{least.free_bytes / 1e9:.1f} GB free on {least.host}",
        "free some space in Spark's local folders (spark.local.dir)",
    )


def _libraries(facts: Sequence[Facts]) -> list[Finding]:
    """What the libraries report about themselves. Nothing of it is needed."""
    lines = [(line, each.host) for each in facts for line in each.libraries if line]
    return [Finding("workers' libraries", ok=True, found=_listed(lines))] if lines else []


def _listed(found: Iterable[tuple[str, str]]) -> str:
    """Each thing found, with the hosts on which it was found."""
    hosts: dict[str, dict[str, None]] = {}
    for what, host in found:
        hosts.setdefault(what, {})[host] = None
    return "; ".join(f"{what} (on {', '.join(where)})" for what, where in hosts.items())
