"""Contestants read the same text, are timed fairly and checked, and reported if they cannot run; ratios decide."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.ingest import main
from bench.ingesting import by_hand
from bench.ingesting.by_hand import grep, hand_loop, kernel
from bench.ingesting.contestants import CONTESTANTS, NAMES, Contestant
from bench.ingesting.environments import Environment, Unavailable
from bench.ingesting.laws import LAWS, Law, Verdict, judged
from bench.ingesting.maven import APEX as ENGINE
from bench.ingesting.maven import Java, Project, java
from bench.ingesting.race import Effort, Measured, Missing, Place, race
from bench.ingesting.report import charts, line_of, machine, page, tables
from bench.ingesting.text import NOTHING, Count, counted, left_in, write_text

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


SIZE = 1 << 20


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("text") / "text", SIZE)


def test_equal_sizes_are_equal_texts(text, tmp_path):
    assert write_text(tmp_path / "again", SIZE).path.read_bytes() == text.path.read_bytes()


def test_its_counts_are_those_of_a_plain_look(text):
    lines = text.path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(b".")]
    assert text.all == Count(len(lines), SIZE) == Count(len(lines), text.path.stat().st_size)
    assert text.kept == Count(len(kept), sum(map(len, kept)))
    assert 90 < text.all.bytes / text.all.lines < 105
    assert 0.09 < 1 - text.kept.lines / text.all.lines < 0.11, "one line in ten is to be dropped"
    assert all(any(letter in line for line in kept) for letter in (b",", b'"', b"'", b";", b"."))


@pytest.mark.parametrize("size", [1, 71, 72, 1000])
def test_a_small_text_is_whole_lines_too(tmp_path, size):
    path = write_text(tmp_path / "small", size).path
    assert path.stat().st_size == size
    assert path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize(
    ("content", "everything", "dropped"),
    [
        (b"", NOTHING, NOTHING),
        (b"a\n.b\n", Count(2, 5), Count(1, 3)),
        (b".a\nb.\n.\nlast", Count(4, 12), Count(2, 5)),
        (b"\n\n.", Count(3, 3), Count(1, 1)),
    ],
)
def test_counted(tmp_path, content, everything, dropped):
    (tmp_path / "file").write_bytes(content)
    assert counted(tmp_path / "file") == (everything, dropped)


def test_marks_and_checksums_are_no_output(tmp_path):
    for name in ("part-0", "_SUCCESS", ".part-0.crc", "deeper/part-1", "_temporary/part-2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n", encoding="ascii")
    assert left_in(tmp_path) == (Count(2, 4), NOTHING)


@pytest.mark.parametrize("ingest", [kernel, grep, hand_loop])
def test_who_needs_no_engine_keeps_the_right_lines(ingest, text, tmp_path, monkeypatch):
    monkeypatch.setattr(by_hand, "BLOCK_SIZE", 100_003)
    ingest(text.path, tmp_path)
    assert left_in(tmp_path) == (text.kept, NOTHING)


def test_the_loop_by_hand_writes_a_file_for_each_block(text, tmp_path, monkeypatch):
    monkeypatch.setattr(by_hand, "BLOCK_SIZE", SIZE // 4)
    hand_loop(text.path, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3"]


def java_in(folder: Path, version: str) -> str:
    """A folder with a `java` that prints this version as Java does."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n", encoding="utf-8")
    command.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(("version", "major"), [("1.8.0_504", 8), ("11", 11), ("17.0.15", 17)])
def test_java_is_found_where_it_is_named(version, major, tmp_path, monkeypatch):
    monkeypatch.setenv("APEX_JAVA_HOME", java_in(tmp_path, version))
    assert java() == Java(str(tmp_path / "bin" / "java"), major, version)


def test_the_oldest_java_is_chosen(tmp_path, monkeypatch):
    monkeypatch.delenv("APEX_JAVA_HOME", raising=False)
    monkeypatch.setenv("JAVA_HOME", java_in(tmp_path / "new", "17.0.1"))
    monkeypatch.setenv("PATH", f"{java_in(tmp_path / 'old', '1.8.0_1')}/bin")
    assert java().command == str(tmp_path / "old" / "bin" / "java")


@pytest.mark.parametrize("version", ["1.7.0_80", "18.0.1", "25", "none"])
def test_a_java_on_which_the_engine_is_slow_or_fails_is_not_used(version, tmp_path, monkeypatch):
    monkeypatch.setenv("APEX_JAVA_HOME", java_in(tmp_path, version))
    with pytest.raises(Unavailable, match="needs Java 8 to 17: install one, for example openjdk-17-jdk"):
        ENGINE.make(print)


def test_maven_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("APEX_JAVA_HOME", java_in(tmp_path, "1.8.0_504"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="needs Maven and a Java compiler: install them"):
        ENGINE.make(print)


def test_a_project_is_compiled_again_when_a_source_changed(tmp_path, monkeypatch):
    home = Path(java_in(tmp_path / "java", "1.8.0_504"))
    calls = tmp_path / "calls"
    maven = home / "bin" / "mvn"
    maven.write_text(f'#!/bin/sh\nmkdir -p "$DAGKIT_BENCH_VENV/made"\necho "$*" >>{calls}\n', encoding="utf-8")
    maven.chmod(0o755)
    monkeypatch.setenv("APEX_JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(maven.parent), prepend=":")
    monkeypatch.setenv("DAGKIT_BENCH_VENV", str(tmp_path))
    source = tmp_path / "Ingest.java"
    project = Project("made", ("apex-engine",), tmp_path / "pom.xml")
    project.pom.write_text("<project/>", encoding="utf-8")
    for text in ("class Ingest {}", "class Ingest {}", "class Ingest { int changed; }"):
        source.write_text(text, encoding="utf-8")
        project.make(print)
    first, second = calls.read_text(encoding="utf-8").splitlines()
    assert first == second
    assert first.endswith("clean compile dependency:copy-dependencies")
