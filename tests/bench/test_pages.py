"""Pages and charts of benchmarks show medians, and whether bounds hold; two trees are compared figure by figure."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

from bench import (
    check,
    compression,
    console,
    copying,
    executors,
    finding,
    formats,
    kafka,
    launches,
    small_files,
    tables,
)
from bench._chart import Bar, Chart
from bench._page import with_part
from bench.compression import LEAST_FIRST, LEAST_SECOND
from bench.launches import COLD, SCRIPT, WARM, WINDOWS
from bench.small_files import BATCH, DAGKIT, LEAST, STREAM

NAMESPACE = "{http://www.w3.org/2000/svg}"
GZIP = compression.Result(400, 350, 700, LEAST_FIRST, LEAST_SECOND, 1.65, 3)


def console_of(shown: float, beside: float) -> console.Measured:
    """A page is shown within a second, and costs two percent."""
    return console.Measured(100_000, [9.0, shown, 0.1], [0.1], 8, [10.0, 9.0, 11.0], [beside])


def warm_launch(seconds: float) -> launches.Measured:
    """A launch in a warm driver takes half a second over its windows."""
    return launches.Measured(1, {COLD: [4.0], WARM: [9.0, seconds, 0.1], WINDOWS: [0.25], SCRIPT: [5.0]})


def cold_launch(seconds: float) -> launches.Measured:
    """A cold launch takes four fifths of a script of PySpark."""
    taken = {COLD: [9.0, seconds, 0.1], WARM: [0.5], WINDOWS: [0.25], SCRIPT: [6.0, 5.0, 4.0]}
    return launches.Measured(1, taken)


def files_of(batch: float, stream: float) -> small_files.Measured:
    return small_files.Measured(1000, {DAGKIT: [10.0], **dict(zip(LEAST, [[batch], [stream]], strict=True))})


def gzip_of(**ratios: float) -> SimpleNamespace:
    return SimpleNamespace(holds=compression.holds(replace(GZIP, **ratios)))


@pytest.mark.parametrize(
    ("measured", "holds"),
    [
        *(
            (console_of(*each), holds)
            for each, holds in (((1.0, 10.2), True), ((1.1, 10.0), False), ((0.2, 10.3), False))
        ),
        *((warm_launch(seconds), holds) for seconds, holds in ((0.75, True), (0.76, False))),
        *((cold_launch(seconds), holds) for seconds, holds in ((4.0, True), (4.1, False))),
        *((files_of(*each), each == (20.0, 100.0)) for each in ((20.0, 100.0), (19.0, 100.0), (20.0, 99.0))),
        (gzip_of(), True),
        (gzip_of(first_ratio=LEAST_FIRST - 0.01), False),
        (gzip_of(second_ratio=LEAST_SECOND - 0.01), False),
    ],
)
def test_every_bound_must_hold(measured, holds):
    assert measured.holds is holds


def messages_of(rate: float, latency: float) -> str:
    rates = {"dagkit-batch": [1.0, rate, 900.0], "structured": [100.0]}
    return kafka.in_words(kafka.Found(rates, {"dagkit": [1.0, latency, 900.0], "structured": [100.0, 100.0]}), 10, 3)


SCANS = {"find": 1.0, "first_scan": 1.5, "scan_of_files": 1.2, "scan_of_folders": 0.1}
SCANNED = finding.Measured(100, 3, **SCANS, bytes_found=9.0, bytes_known=8.0)
SEEN = finding.Seen(10**6, 2.5, 0.005, megabytes=120.0, written=81.0, most_written=8_200_000)
SPEEDS = {"computing": {1: [10.0, 11.0, 30.0], 2: [5.5, 5.0, 9.0]}, "waiting": {1: [8.0], 2: [4.5], 4: [2.5]}}
COPIES = {"cp": [1.0, 3.0, 2.0], "dagkit": [4.0], "dagkit, synced": [5.0], "cp, synced": [4.0]}
READINGS = [formats.Reading("csv", 10, [30, 31, 20], [20]), formats.Reading("json", 10, [20], [20])]
WRITINGS = [tables.Writing("PostgreSQL", [90], [100]), tables.Writing("Delta", [90], [100])]
SMALL = small_files.Measured(1000, {DAGKIT: [1.0, 2.0, 3.0], BATCH: [3.0, 3.0, 4.0], STREAM: [30.0, 40.0, 20.0]})


BATCH_OVER, LATENCY_OVER = "| batch over Structured Streaming |", "| latency over Structured Streaming |"
PAGES = {
    console.page(console_of(1.0, 10.2)): [
        "| until the page shows the run | 1.00 (0.10 to 9.00) |",
        "2.0% of the throughput; at most 2% is wanted",
    ],
    launches.page(warm_launch(0.75)): ["over the windows alone: 0.50 s", "| in a warm driver | 0.75 | 0.10 to 9.00 |"],
    launches.page(cold_launch(4.1)): ["over the script: 0.82; at most 0.8"],
    small_files.page(SMALL): [
        "| dagkit | 2.00 | 1.00 to 3.00 | 500 | 1.0 |  |",
        "| Spark, batch | 3.00 | 3.00 to 4.00 | 333 | 1.5 | 2 |",
    ],
    compression.page(GZIP, 64 << 20): ["was 1.65 times as fast"],
    messages_of(150.0, 50.0): [
        f"{BATCH_OVER} 1.50 | at least 1.5 | holds |",
        f"{LATENCY_OVER} 0.50 | at most 0.5 | holds |",
    ],
    messages_of(149.0, 51.0): [
        f"{BATCH_OVER} 1.49 | at least 1.5 | falls short |",
        f"{LATENCY_OVER} 0.51 | at most 0.5 | falls short |",
    ],
    finding.page(SCANNED, SEEN): [
        "at 0.67 it holds",
        "| first scan | 1.500 | 15000.00 |",
        "The driver takes 120 MB for them, 120 bytes for each",
    ],
    "\n".join(executors.page(SPEEDS, 10, 3)): [
        "| computing | 2 | 5.50 (5.00 to 9.00) | 2.00 | 1.8 |",
        "| waiting | 4 | 2.50 (2.50 to 2.50) | 3.20 |  |",
    ],
    copying.page(COPIES, 1.0, 3): [
        "| cp | 537 | 358 to 1074 | 1.00 |",
        "| dagkit | 268 | 268 to 268 | 0.50 |",
        "| dagkit, synced | 215 | 215 to 215 | 0.80 |",
    ],
    formats.in_words(READINGS, 5, 1): [
        "| csv | 10 | 30 (20 to 31) | 20 (20 to 20) | 1.50 | 1.5 | holds |",
        "| json | 10 | 20 (20 to 20) | 20 (20 to 20) | 1.00 | 1.5 | falls short |",
    ],
    tables.in_words(WRITINGS, 5, 1): [
        "| PostgreSQL | 90 (90 to 90) | 100 (100 to 100) | 0.90 | 1.0 | falls short |",
        "| Delta | 90 (90 to 90) | 100 (100 to 100) | 0.90 | 0.8 | holds |",
    ],
}


@pytest.mark.parametrize(("page", "shown"), PAGES.items(), ids=[shown[0] for shown in PAGES.values()])
def test_a_page_shows_medians_and_whether_bounds_hold(page, shown):
    assert [each for each in shown if each not in page] == []


def test_the_page_about_gzip_files_has_a_row_for_each_reading():
    rows = [[cell.strip() for cell in line.split("|")[2:-1]] for line in compression.page(GZIP, 64 << 20).splitlines()]
    assert rows[-3:] == [["400", "", "", "3"], ["350", "0.80", "0.8", "3"], ["700", "1.70", "1.7", "3"]]


def test_messages_that_were_not_measured_are_not_judged():
    assert list(kafka.Found({"dagkit-batch": [1.0]}, {"structured": [1.0]}).verdicts()) == []


def test_bars_are_as_long_as_the_medians():
    chart = Chart("any", "speed, MB/s", [Bar("dagkit, batch", [90, 100, 130]), Bar("a < b & c", [50])])
    drawing = fromstring(chart.svg())  # noqa: S314 - our own document
    ours, theirs = drawing.iter(f"{NAMESPACE}rect")
    assert (ours.get("class"), theirs.get("class")) == ("dagkit", "other")
    assert float(ours.attrib["width"]) == 2 * float(theirs.attrib["width"])
    texts = [text.text for text in drawing.iter(f"{NAMESPACE}text")]
    assert texts == ["speed, MB/s", "dagkit, batch", "100", "a < b & c", "50.0"]


def test_what_others_measured_stays_on_the_page_and_no_text_of_others_is_overwritten():
    page = with_part("", "ingest", "# Benchmarks\n")
    page = with_part(page, "claims", "# What claims cost\n\nlittle\n")
    assert with_part(page, "claims", "# What claims cost\n\nlittle\n") == page
    again = with_part(page, "ingest", "# Benchmarks\n\nagain")
    assert again.index("again") < again.index("# What claims cost") < again.index("little")
    assert again.count("# Benchmarks") == again.count("little") == 1
    with pytest.raises(AssertionError, match="belongs to a benchmark"):
        with_part("# My own words", "claims", "")


PRINTED: dict[str, list[dict[str, Any]]] = {
    "ingest": [
        {"kind": "machine"},
        {"contestant": "dagkit-batch", "warm_mb_per_second": 2000.0, "cold_mb_per_second": 100.0},
        {"contestant": "dagkit-record", "warm_mb_per_second": 800.0, "cold_mb_per_second": 90.0},
    ],
    "exchange": [{"ways": [{"name": "keyed by the text", "mb_per_second": 220.0}]}],
    "window": [{"measured": [{"name": "window", "median_millis": 4.0}, {"name": "trigger", "median_millis": 10.0}]}],
}


def test_each_figure_is_found_in_what_its_benchmark_prints():
    found = [figure.read(PRINTED[figure.benchmark[0]]) for figure in check.FIGURES]
    assert found == [2000.0, 800.0, 100.0, 220.0, 250.0]


def test_the_trees_take_turns_at_being_first():
    ran: list[tuple[str, str]] = []

    def run(tree: Path, benchmark: Sequence[str]) -> check.Answers:
        ran.append((tree.name, benchmark[0]))
        return PRINTED[benchmark[0]]

    found = check.measured({"before": Path("before"), "now": Path("now")}, 2, run)
    assert [tree for tree, benchmark in ran if benchmark == "window"] == ["before", "now", "now", "before"]
    assert all(check.ratio(both) == 1 for both in found.values())
    assert "SLOWER" not in "".join(check.table(found))
    found["windows"]["now"] = [200.0, 200.0]
    assert [line.split(",")[0] for line in check.table(found) if "SLOWER" in line] == ["windows"]


def test_a_tree_that_measures_nothing_is_an_error(tmp_path):
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "__main__.py").write_text("raise SystemExit(2)")
    with pytest.raises(check.NotMeasured, match="python -m bench window ended with 2"):
        check.run(tmp_path, ("window",))
    (tmp_path / "bench" / "__main__.py").write_text("print({}); raise SystemExit(1)")
    assert check.run(tmp_path, ("window",)) == [{}]
