"""Two trees are compared figure by figure, by the medians of runs that took turns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench import check

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
