"""What claims cost is measured on the same lines, judged, and written beside what others measured."""

import json

import pytest

from bench import claims
from bench._page import with_part
from dagkit_operators import LineReader

QUICK = ["--mib", "3", "--rounds", "1"]


@pytest.mark.trial
@pytest.mark.slow
def test_each_use_and_each_claim_is_reported(capsys, monkeypatch):
    monkeypatch.setattr(claims, "MOST_OVERHEAD", 100.0)
    assert claims.main([*QUICK, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "dagkit.bench.claims/1"
    assert [one["use"] for one in told["overheads"]] == ["counted", "found", "decoded"]
    assert all(one["rounds"] == 2 and one["mb_per_second"] > 0 for one in told["overheads"])
    assert all(one["nanos"] > 0 for one in told["claims"])
    assert told["holds"]


@pytest.mark.trial
@pytest.mark.slow
def test_a_tracker_that_costs_too_much_fails(capsys, monkeypatch):
    monkeypatch.setattr(claims, "MOST_OVERHEAD", -0.99)
    assert claims.main(QUICK) == 1
    assert capsys.readouterr().out.count("MISSED") == 3


def test_who_does_not_read_the_same_lines_is_not_measured(monkeypatch):
    monkeypatch.setattr(claims, "READER", LineReader(skip_header_lines=1))
    with pytest.raises(AssertionError, match="both read the same lines"):
        claims.main(QUICK)


def test_what_others_measured_stays_on_the_page():
    page = with_part("", "ingest", "# Benchmarks\n")
    page = with_part(page, "claims", "# What claims cost\n\nlittle\n")
    assert with_part(page, "claims", "# What claims cost\n\nlittle\n") == page
    again = with_part(page, "ingest", "# Benchmarks\n\nagain")
    assert again.index("again") < again.index("# What claims cost") < again.index("little")
    assert again.count("# Benchmarks") == again.count("little") == 1


def test_text_of_no_benchmark_is_not_overwritten():
    with pytest.raises(AssertionError, match="belongs to a benchmark"):
        with_part("# My own words", "claims", "")
