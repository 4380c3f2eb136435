"""The results as lines of JSON, and from these tables and a page of the documentation."""

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from bench._chart import Bar, Chart
from bench.ingesting.contestants import CONTESTANTS
from bench.ingesting.laws import LAWS, Verdict
from bench.ingesting.race import Effort, Measured, Missing
from bench.ingesting.sizes import cores
from dagkit_operators.native.compiled import compiled

Line = Mapping[str, Any]

SCHEMA = "dagkit.bench.ingest/1"
INNER = ", inner rate"
_ABOUT = {contestant.name: contestant for contestant in CONTESTANTS}
_LAWS = {law.name: law for law in LAWS}


def machine(effort: Effort) -> Line:
    """The machine and the effort behind all rates."""
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
    """One result as a line."""
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
    common = {"schema": SCHEMA, "contestant": found.contestant.name, "where": found.where}
    if isinstance(found, Missing):
        return {**common, "kind": "missing", "why": found.why}
    return {
        **common,
        "kind": "rate",
        "bytes": found.size,
        "lines": found.lines,
        "warm_mb_per_second": round(found.rate, 1),
        "cold_mb_per_second": round(found.cold_rate, 1),
        "warm": [round(rate, 1) for rate in found.warm],
        "cold": [round(rate, 1) for rate in found.cold],
        "inner": [round(rate, 1) for rate in found.inner],
        "lost": found.lost,
        "versions": dict(found.versions),
    }


def tables(lines: Sequence[Line]) -> Iterator[str]:
    """The results for a terminal."""
    for where in _places(lines):
        header = f"{'MB/s, ' + where:24}{'warm':>8}{'slowest':>9}{'fastest':>9}{'cold':>8}{'MiB':>8}{'Mlines/s':>10}"
        yield header
        for line in _of(lines, "rate", where):
            warm = line["warm_mb_per_second"]
            yield (
                f"{line['contestant']:24}{warm:>8.0f}{min(line['warm']):>9.0f}{max(line['warm']):>9.0f}"
                f"{line['cold_mb_per_second']:>8.0f}{line['bytes'] / 2**20:>8.0f}{_lines_rate(line, warm):>10.2f}"
            )
            if inner := line["inner"]:
                rates = f"{median(inner):>8.0f}{min(inner):>9.0f}{max(inner):>9.0f}"
                yield f"{line['contestant'] + INNER:24}{rates}{'':16}{_lines_rate(line, median(inner)):>10.2f}"
            yield from _losses(line)
        yield ""
        for line in _of(lines, "ratio", where):
            yield f"{line['name'] + ', ' + where:56}{_ratio(line):>8} >= {line['at_least']:<6g}{line['verdict']}"
        yield ""
        for line in _of(lines, "missing", where):
            yield f"NOT MEASURED, {where}: {line['contestant']}: {line['why']}"


def charts(lines: Sequence[Line]) -> Iterator[Chart]:
    """The warm rates in each place."""
    for where in _places(lines):
        bars = [Bar(title, rates) for line in _of(lines, "rate", where) for title, rates in _rates(line)]
        if bars:
            yield Chart(f"bench-ingest-{where}", f"Files {_place(where)}, warm, MB/s", bars)


def page(lines: Sequence[Line]) -> str:
    """The page with the results."""
    (machine_line,) = (line for line in lines if line["kind"] == "machine")
    return "\n".join(_page(lines, machine_line)) + "\n"


def _page(lines: Sequence[Line], machine_line: Line) -> Iterator[str]:
    yield from _method(lines, machine_line)
    for where in _places(lines):
        yield from _rates_of(lines, where)
    yield "## Required ratios\n"
    yield (
        "The benchmark fails if one of these ratios is not met. Ratios compare the warm medians, for Apache Apex those "
        "of its inner rate.\n"
    )
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
    yield "## Contestants\n"
    measured = {line["contestant"] for line in lines if line["kind"] == "rate"}
    yield from _table(("", "how"), ((c.title, c.about) for c in CONTESTANTS if c.name in measured), last=True)


def _method(lines: Sequence[Line], machine_line: Line) -> Iterator[str]:
    """What is measured, on which machine, and what the words mean."""
    size = max((line["bytes"] for line in lines if line["kind"] == "rate"), default=0)
    yield "# Benchmarks\n"
    yield (
        "Each part of this page is generated by its own benchmark; run the benchmarks to get the figures of your "
        "machine:\n"
    )
    yield "```sh\npython -m bench ingest --write-docs\n```\n"
    yield (
        f"All contestants do one task: read {size / 2**30:g} GiB of text in lines of about a hundred bytes, drop the "
        "one line in ten that begins with a dot, and write the rest. They read the same generated text, and each "
        "output is checked: the numbers of lines and bytes must be right, and no line may begin with a dot. Each "
        "contestant runs in its own process; they take turns, round after round. Before that, the benchmark uses and "
        "frees the necessary memory: a virtual machine that must request memory from its host waits for it ten times "
        "as long as writing takes.\n"
    )
    yield (
        f"Measured with {machine_line['cores']} cores and {machine_line['memory_gib']} GiB of memory, "
        f"{machine_line['system']}, Python {machine_line['python']}, {_versions(lines)}, "
        f"byte scanning in {'compiled C' if machine_line['compiled'] else 'numpy'}; "
        f"rounds: {machine_line['rounds']}, warm runs in each: {machine_line['runs']}.\n"
    )
    yield (
        "**Warm** is the median of the runs after a process's first, with the slowest and the fastest beside it; "
        "**cold** is the median of first runs, including the start of the process. Spark's virtual machine compiles "
        "code during about the first dozen runs, on the cores that work. Slow contestants read less text, which lowers "
        "their cold rates. A megabyte is a million bytes.\n"
    )


def _rates_of(lines: Sequence[Line], where: str) -> Iterator[str]:
    """The rates of all contestants with files at a place."""
    yield f"## Files {_place(where)}\n"
    yield from _table(
        ("", "warm, MB/s", "slowest to fastest", "million lines/s", "cold, MB/s", "text, MiB"),
        (
            (
                title,
                f"{median(rates):.0f}",
                f"{min(rates):.0f} to {max(rates):.0f}",
                f"{_lines_rate(line, median(rates)):.2f}",
                f"{line['cold_mb_per_second']:.0f}" if rates is line["warm"] else "",
                f"{line['bytes'] / 2**20:.0f}",
            )
            for line in _of(lines, "rate", where)
            for title, rates in _rates(line)
        ),
    )
    for line in _of(lines, "rate", where):
        yield from (f"{loss}\n" for loss in _losses(line))
    for line in _of(lines, "missing", where):
        yield f"Not measured: {_ABOUT[line['contestant']].title}.\n"


def _title(line: Line) -> str:
    contestant = _ABOUT[line["contestant"]]
    return contestant.title + (", one core" if contestant.one_core else "")


def _rates(line: Line) -> Iterator[tuple[str, Sequence[float]]]:
    """The rates of whole warm runs, and those without launch and shutdown if they were measured, with titles."""
    yield _title(line), line["warm"]
    if line["inner"]:
        yield _title(line) + INNER, line["inner"]


def _losses(line: Line) -> Iterator[str]:
    if line["lost"]:
        yield f"{_title(line)} lost or changed lines in {line['lost']} of its processes, which were started again."


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


def _lines_rate(line: Line, megabytes: float) -> float:
    """Million lines a second at this rate."""
    rate: float = megabytes * line["lines"] / line["bytes"]
    return rate


def _ratio(line: Line) -> str:
    return "-" if line["ratio"] is None else f"{line['ratio']:.2f}"


def _versions(lines: Sequence[Line]) -> str:
    versions: dict[str, str] = {}
    for line in lines:
        versions |= line.get("versions", {})
    return ", ".join(f"{package} {version}" for package, version in sorted(versions.items()))
