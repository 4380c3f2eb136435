"""Contestants are timed fairly and checked, and reported if they cannot run; ratios decide."""

import json
from dataclasses import replace

import pytest

from bench.ingest import main
from bench.ingesting.contestants import CONTESTANTS, NAMES, Contestant
from bench.ingesting.environments import Environment, Unavailable
from bench.ingesting.laws import LAWS, Law, Verdict, judged
from bench.ingesting.race import Effort, Measured, Missing, Place, race
from bench.ingesting.report import charts, line_of, machine, page, tables

EVERYBODY = frozenset(NAMES)
SMALL = Effort(size=100_000, rounds=2, runs=2)
GREP, KERNEL, APEX = (next(c for c in CONTESTANTS if c.name == name) for name in ("grep", "kernel", "apex"))


def verdict(name: str, rates: dict[str, float], asked: frozenset[str] = EVERYBODY) -> Verdict | None:
    return next((one for one in judged(rates, asked, "memory", cores=4) if one.law.name == name), None)


def test_laws_speak_of_contestants_and_names_are_used_once():
    assert {name for law in LAWS for name in (law.numerator, law.denominator)} <= EVERYBODY
    assert len(EVERYBODY) == len(CONTESTANTS)
    assert len({law.name for law in LAWS}) == len(LAWS)


@pytest.mark.parametrize(
    ("rates", "word"),
    [
        ({"dagkit-batch": 1000.0, "polars": 1000.0}, "holds"),
        ({"dagkit-batch": 999.0, "polars": 1000.0}, "falls short"),
        ({"dagkit-batch": 1000.0}, "not measured"),
    ],
)
def test_a_ratio_that_is_just_enough_holds_and_one_that_was_not_measured_does_not(rates, word):
    found = verdict("batch over Polars", rates)
    assert (found.word, found.holds) == (word, word == "holds")


def test_a_rate_per_core_is_shared_out_before_it_is_compared():
    rates = {"dagkit-record": 800.0, "hand-loop": 200.0}
    assert verdict("per record over a loop by hand, per core", rates).ratio == 1.0


def test_ratios_compare_the_rate_without_launches_where_it_is_measured():
    assert told("kernel", 900.0).compared == 900.0
    assert replace(told("apex", 40.0), inner=(90.0, 80.0, 100.0)).compared == 90.0


def test_a_law_about_an_engine_that_was_not_asked_says_nothing():
    assert verdict("batch over Polars", {"dagkit-batch": 1.0}, frozenset({"dagkit-batch"})) is None


def told(name: str, rate: float) -> Measured:
    contestant = next(c for c in CONTESTANTS if c.name == name)
    return Measured(contestant, "memory", 1 << 30, 11_000_000, (rate / 2,), (rate, rate + 1, rate - 1), {"numpy": "2"})


def test_the_page_shows_rates_ratios_and_versions_and_no_paths():
    findings = [
        told("kernel", 900.0),
        told("grep", 600.0),
        Missing(GREP, "disk", "no file /home/somebody/grep"),
        Verdict(Law("kernel over grep", "kernel", "grep", 1.0), "memory", 1.5),
    ]
    text = page([machine(SMALL), *map(line_of, findings)])
    assert "| dagkit's kernel, one core | 900 | 899 to 901 | 9.22 | 450 | 1024 |" in text
    assert "| kernel over grep | in memory | 1.50 | 1 | holds |" in text
    assert "numpy 2" in text
    assert "Not measured: `grep -v`." in text
    assert "/home" not in text


def test_an_inner_rate_has_a_row_a_bar_and_a_line_and_losses_are_reported():
    found = line_of(replace(told("apex", 40.0), inner=(90.0, 80.0, 100.0), lost=1))
    lines = [machine(SMALL), found]
    assert "| Apache Apex | 40 | 39 to 41 | 0.41 | 20 | 1024 |" in page(lines)
    assert "| Apache Apex, inner rate | 90 | 80 to 100 | 0.92 |  | 1024 |" in page(lines)
    assert "Apache Apex lost or changed lines in 1 of its processes, which were started again." in page(lines)
    assert [bar.name for chart in charts(lines) for bar in chart.bars] == ["Apache Apex", "Apache Apex, inner rate"]
    assert any(line.split() == ["apex,", "inner", "rate", "90", "80", "100", "0.92"] for line in tables(lines))


def test_the_table_names_what_is_missing_and_why():
    assert "NOT MEASURED, disk: grep: install it" in list(tables([line_of(Missing(GREP, "disk", "install it"))]))


def test_no_other_engine_can_be_asked_for(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "sed"])
    assert "there is no sed" in capsys.readouterr().err


@pytest.mark.trial
def test_every_round_has_a_first_run_and_warm_ones_and_nothing_is_left_behind(tmp_path):
    (found,) = race([KERNEL], Place("disk", tmp_path), SMALL, print)
    assert (len(found.cold), len(found.warm)) == (2, 4)
    assert found.cold_rate < found.rate
    assert set(found.versions) == {"pyarrow", "numpy"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.trial
@pytest.mark.parametrize(
    ("liar", "why"),
    [
        ("keeps_everything", "lines that begin with a dot"),
        ("loses_the_last_line", "there were"),
        ("fails", "RuntimeError: no such engine"),
    ],
)
def test_an_engine_that_fails_is_reported_and_the_others_continue(tmp_path, liar, why):
    lying = Contestant(liar, liar, "", f"tests.bench.liars:{liar}")
    missing, measured = race([lying, KERNEL], Place("disk", tmp_path), SMALL, print)
    assert isinstance(missing, Missing)
    assert why in missing.why
    assert isinstance(measured, Measured)


@pytest.mark.trial
def test_a_process_that_lost_lines_is_repeated_and_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("APEX_JAVA_HOME", str(tmp_path / "nowhere"))
    losing = Contestant("losing", "losing", "", "tests.bench.liars:loses_the_last_line_once", repeats=1)
    without_java, measured = race([APEX, losing], Place("disk", tmp_path / "disk"), Effort(100_000, 1, 2), print)
    assert isinstance(without_java, Missing)
    assert "APEX_JAVA_HOME" in without_java.why
    assert (measured.lost, len(measured.warm), len(measured.inner)) == (1, 2, 2)
    assert measured.compared > measured.rate


@pytest.mark.trial
def test_packages_that_cannot_be_had_are_reported_with_the_command_that_brings_them(tmp_path, monkeypatch):
    monkeypatch.setenv("DAGKIT_BENCH_VENV", str(tmp_path))
    wanted = str(tmp_path / "nowhere")
    with pytest.raises(Unavailable, match=f"pip .*install --quiet {wanted}"):
        Environment("nobody", (wanted,)).make(print)


@pytest.mark.trial
def test_the_command_prints_a_line_for_each_finding(tmp_path, capsys):
    effort = ["--gib", "0.001", "--rounds", "1", "--runs", "1"]
    code = main([*effort, "--only", "grep,kernel", "--where", "disk", "--disk", str(tmp_path), "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["kind"] for line in lines] == ["machine", "rate", "rate", "ratio"]
    assert code == (0 if lines[-1]["verdict"] == "holds" else 1)
