"""What figures cost is measured on windows that do the same, judged, and written beside what others measured."""

import json

import pytest

from bench import figures

QUICK = ["--mib", "1", "--rounds", "2"]


@pytest.mark.trial
@pytest.mark.slow
def test_each_path_is_reported(capsys, monkeypatch):
    monkeypatch.setattr(figures, "MOST_OVERHEAD", 100.0)
    monkeypatch.setattr(figures, "MOST_MILLIS_FOR_A_SLOT", 100.0)
    assert figures.main([*QUICK, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "dagkit.bench.figures/1"
    assert [one["path"] for one in told["overheads"]] == ["batch", "record", "bare"]
    assert all(one["ratios"] == 2 and one["ratio"] > 0 for one in told["overheads"])
    assert told["millis_for_a_slot"] > 0
    assert told["holds"]


@pytest.mark.trial
@pytest.mark.slow
def test_figures_that_cost_too_much_fail(capsys, monkeypatch):
    monkeypatch.setattr(figures, "MOST_OVERHEAD", -0.99)
    assert figures.main(QUICK) == 1
    assert capsys.readouterr().out.count("MISSED") == len(figures.JUDGED)


@pytest.mark.parametrize("path", figures.PATHS)
def test_without_figures_a_window_does_the_same_and_counts_nothing(path, tmp_path):
    text = tmp_path / "text"
    text.write_text("a b\n.c\nd\n")
    program = figures.fused(figures.PATHS[path])
    work = figures.work_on(program, text)
    with_figures = figures.window(program, work)[1]
    with figures.unmeasured():
        without = figures.window(program, work)[1]
    assert with_figures.figures["1"].taken == {"input": 2}
    assert (without.figures, without.state) == ({}, with_figures.state)
    assert without.positions == with_figures.positions == 9
