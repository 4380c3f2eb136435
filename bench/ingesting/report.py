"""What was measured, as lines of JSON; and what is read from such lines: tables, and a page of the documents."""

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bench.ingesting.contestants import CONTESTANTS
from bench.ingesting.laws import LAWS, Verdict
from bench.ingesting.race import Effort, Measured, Missing
from bench.ingesting.sizes import cores
from dagkit_operators.compiled import compiled

Line = Mapping[str, Any]

SCHEMA = "dagkit.bench.ingest/1"
_ABOUT = {contestant.name: contestant for contestant in CONTESTANTS}
_LAWS = {law.name: law for law in LAWS}


def machine(effort: Effort) -> Line:
    """What all rates depend on."""
    return {
        "schema": SCHEMA,
        "kind": "machine",
        "cores": cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "compiled": compiled() is not None,
        "load_before": round(os.getloadavg()[0], 2),
        "rounds": effort.rounds,
        "runs": effort.runs,
    }


def line_of(found: Measured | Missing | Verdict) -> Line:
    """One finding."""
    if isinstance(found, Verdict):
        law = found.law
        return {
            "schema": SCHEMA,
            "kind": "ratio",
            "name": law.name,
            "where": found.where,
            "ratio": None if found.ratio is None else round(found.ratio, 3),
            "at_least": law.at_least,
            "verdict": found.word,
        }
    told = {"schema": SCHEMA, "contestant": found.contestant.name, "where": found.where}
    if isinstance(found, Missing):
        return {**told, "kind": "missing", "why": found.why}
    return {
        **told,
        "kind": "rate",
        "bytes": found.size,
        "lines": found.lines,
        "warm_mb_per_second": round(found.rate, 1),
        "cold_mb_per_second": round(found.cold_rate, 1),
        "warm": [round(rate, 1) for rate in found.warm],
        "cold": [round(rate, 1) for rate in found.cold],
        "versions": dict(found.versions),
    }


def tables(lines: Sequence[Line]) -> Iterator[str]:
    """What was measured, for a terminal."""
    for where in _places(lines):
        header = f"{'MB/s, ' + where:24}{'warm':>8}{'slowest':>9}{'fastest':>9}{'cold':>8}{'MiB':>8}{'Mlines/s':>10}"
        yield header
        for line in _of(lines, "rate", where):
            warm = line["warm_mb_per_second"]
            yield (
                f"{line['contestant']:24}{warm:>8.0f}{min(line['warm']):>9.0f}{max(line['warm']):>9.0f}"
                f"{line['cold_mb_per_second']:>8.0f}{line['bytes'] / 2**20:>8.0f}{_lines_rate(line):>10.2f}"
            )
        yield ""
        for line in _of(lines, "ratio", where):
            yield f"{line['name'] + ', ' + where:56}{_ratio(line):>8} >= {line['at_least']:<6g}{line['verdict']}"
        yield ""
        for line in _of(lines, "missing", where):
            yield f"NOT MEASURED, {where}: {line['contestant']}: {line['why']}"


def page(lines: Sequence[Line]) -> str:
    """The document that tells what was measured."""
    (machine_line,) = (line for line in lines if line["kind"] == "machine")
    return "\n".join(_page(lines, machine_line)) + "\n"


def _page(lines: Sequence[Line], machine_line: Line) -> Iterator[str]:
    size = max((line["bytes"] for line in lines if line["kind"] == "rate"), default=0)
    yield "# Benchmarks\n"
    yield (
        "This page is generated, each part of it by its own benchmark; it says again on another machine what that "
        "machine does:\n"
    )
    yield "```sh\npython -m bench ingest --write-docs\n```\n"
    yield (
        f"One task, done by everybody: read {size / 2**30:g} GiB of text, lines of about a hundred bytes, drop the one "
        "line in ten that begins with a dot, and write the rest. The text is generated, the same for everybody, and "
        "what each contestant wrote is counted: lines and bytes must be right, and no line may begin with a dot. Each "
        "contestant runs in a process of its own; they take turns, round after round. Memory for all of it was used "
        "and freed before, and the machine keeps it: a virtual one that has to ask its host for memory waits for it "
        "ten times as long as writing takes.\n"
    )
    yield (
        f"Measured with {machine_line['cores']} cores and {machine_line['memory_gib']} GiB of memory, "
        f"{machine_line['system']}, Python {machine_line['python']}, {_versions(lines)}, "
        f"{'with' if machine_line['compiled'] else 'without'} what dagkit has in C; "
        f"rounds: {machine_line['rounds']}, warm runs in each: {machine_line['runs']}.\n"
    )
    yield (
        "**Warm** is the median of the runs after a process's first, with the slowest and the fastest beside it; "
        "**cold** is the median of first runs, from the start of the process on, so that what starts slowly reads "
        "slowly. Spark's virtual machine goes on compiling itself for a dozen runs, on the cores that work. Slow "
        "contestants got less text, and their cold rates are the lower for it. A megabyte is a million bytes.\n"
    )
    for where in _places(lines):
        yield f"## Files {_place(where)}\n"
        yield from _table(
            ("", "warm, MB/s", "slowest to fastest", "million lines/s", "cold, MB/s", "text, MiB"),
            (
                (
                    _ABOUT[line["contestant"]].title + (", one core" if _ABOUT[line["contestant"]].one_core else ""),
                    f"{line['warm_mb_per_second']:.0f}",
                    f"{min(line['warm']):.0f} to {max(line['warm']):.0f}",
                    f"{_lines_rate(line):.2f}",
                    f"{line['cold_mb_per_second']:.0f}",
                    f"{line['bytes'] / 2**20:.0f}",
                )
                for line in _of(lines, "rate", where)
            ),
        )
        for line in _of(lines, "missing", where):
            yield f"Not measured: {_ABOUT[line['contestant']].title}.\n"
    yield "## What must hold\n"
    yield "The benchmark fails when one of these does not. Ratios are those of the warm medians.\n"
    yield from _table(
        ("", "files", "ratio", "at least", ""),
        (
            (
                line["name"],
                _place(line["where"]),
                _ratio(line),
                f"{line['at_least']:g}",
                line["verdict"],
            )
            for line in lines
            if line["kind"] == "ratio"
        ),
    )
    yield "## Who does what\n"
    measured = {line["contestant"] for line in lines if line["kind"] == "rate"}
    yield from _table(("", "how"), ((c.title, c.about) for c in CONTESTANTS if c.name in measured), last=True)


def _place(where: str) -> str:
    return {"memory": "in memory", "disk": "on disk"}[where]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], *, last: bool = False) -> Iterator[str]:
    numbers = {
        place
        for place, title in enumerate(header)
        if any(unit in title for unit in ("MB", "ratio", "at least", "slowest", "lines", "MiB"))
    }
    yield "| " + " | ".join(header) + " |"
    yield "|" + "|".join("---:" if place in numbers else "---" for place in range(len(header))) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    if not last:
        yield ""


def _places(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(line["where"] for line in lines if "where" in line))


def _of(lines: Sequence[Line], kind: str, where: str) -> list[Line]:
    return [line for line in lines if line["kind"] == kind and line["where"] == where]


def _lines_rate(line: Line) -> float:
    """Million lines a second."""
    rate: float = line["warm_mb_per_second"] * line["lines"] / line["bytes"]
    return rate


def _ratio(line: Line) -> str:
    return "-" if line["ratio"] is None else f"{line['ratio']:.2f}"


def _versions(lines: Sequence[Line]) -> str:
    versions: dict[str, str] = {}
    for line in lines:
        versions |= line.get("versions", {})
    return ", ".join(f"{package} {version}" for package, version in sorted(versions.items()))
