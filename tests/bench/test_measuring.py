"""Benchmarks measure contestants that do the same, report each of them, and fail if a bound is missed."""

import json
import shutil
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench import claims, compression, copying, executors, figures, finding, formats, small_files, tables
from bench.messages.task import Task, task_in
from dagkit import Block
from dagkit.testing import Alone
from dagkit_operators import LineReader, value
from tests.processes import run_program

CLAIMS, FIGURES = ["--mib", "3", "--rounds", "1"], ["--millis", "1", "--rounds", "2"]
needs_find = pytest.mark.skipif(shutil.which("find") is None, reason="it measures beside find")


@pytest.mark.trial
def test_each_use_and_each_claim_is_reported(capsys, monkeypatch):
    monkeypatch.setattr(claims, "MOST_OVERHEAD", 100.0)
    assert claims.main([*CLAIMS, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "dagkit.bench.claims/1"
    assert [one["use"] for one in told["overheads"]] == ["counted", "found", "decoded"]
    assert all(one["rounds"] == 2 and one["mb_per_second"] > 0 for one in told["overheads"])
    assert all(one["nanos"] > 0 for one in told["claims"])
    assert told["holds"]


@pytest.mark.trial
def test_each_path_of_figures_is_reported(capsys, monkeypatch):
    monkeypatch.setattr(figures, "MOST_OVERHEAD", 100.0)
    monkeypatch.setattr(figures, "MOST_MILLIS_FOR_A_SLOT", 100.0)
    assert figures.main([*FIGURES, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "dagkit.bench.figures/1"
    assert [one["path"] for one in told["overheads"]] == ["batch", "record", "bare"]
    assert all(one["ratios"] == 2 and one["ratio"] > 0 for one in told["overheads"])
    assert told["millis_for_a_slot"] > 0
    assert told["holds"]


@pytest.mark.trial
@pytest.mark.parametrize(("bench", "words", "missed"), [(claims, CLAIMS, 3), (figures, FIGURES, len(figures.JUDGED))])
def test_what_costs_too_much_fails(capsys, monkeypatch, bench, words, missed):
    monkeypatch.setattr(bench, "MOST_OVERHEAD", -0.99)
    assert bench.main(words) == 1
    assert capsys.readouterr().out.count("MISSED") == missed


def test_who_does_not_read_the_same_lines_is_not_measured(monkeypatch):
    monkeypatch.setattr(claims, "READER", LineReader(skip_header_lines=1))
    with pytest.raises(AssertionError, match="both read the same lines"):
        claims.main(CLAIMS)


@pytest.mark.parametrize("path", figures.PATHS)
def test_without_figures_a_window_does_the_same_and_counts_nothing(path, tmp_path):
    (text := tmp_path / "text").write_text("a b\n.c\nd\n")
    program = figures.fused(figures.PATHS[path])
    work = figures.work_on(program, text)
    with_figures = figures.window(program, work)[1]
    with figures.unmeasured():
        without = figures.window(program, work)[1]
    assert with_figures.figures["1"].taken == {"input": 2}
    assert (without.figures, without.state) == ({}, with_figures.state)
    assert without.positions == with_figures.positions == 9


@pytest.mark.trial
def test_each_line_of_a_gzip_file_is_read_once_by_one_and_by_two(tmp_path):
    result = compression.measured(tmp_path, 40 << 20, rounds=1)
    assert result.rounds == 1
    assert min(result.igzip_mb_per_second, result.first_mb_per_second, result.second_mb_per_second) > 0
    assert result.second_ratio_of_elapsed > 0


@pytest.mark.trial
@pytest.mark.spark
@pytest.mark.skipif(shutil.which("cp") is None, reason="it measures beside cp")
def test_each_contestant_copies_and_the_bound_decides_the_exit_code(tmp_path):
    command = [
        sys.executable,
        "-m",
        "bench",
        "copying",
        "--json",
        "--disk",
        str(tmp_path),
        "--gib",
        "0.004",
        "--rounds",
        "1",
    ]
    done = run_program(command, check=False, seconds=600)
    seconds = json.loads(done.stdout)
    ways = [f"{each}{more}" for each in ("dagkit", "dagkit, synced") for more in ("", ", with checksums")]
    assert {name: len(took) for name, took in seconds.items()} == dict.fromkeys(["cp", "cp, synced", *ways], 1)
    holds = all(copying.ratio(seconds, *each) >= copying.LEAST for each in copying.BOUND.items())
    assert done.returncode == (0 if holds else 1)
    assert list(tmp_path.iterdir()) == []


def test_a_copy_that_differs_is_no_figure(tmp_path):
    def wrong_copy(_: Path, place: Path) -> None:
        (place / "target/original").write_bytes(b"abd")

    (source := tmp_path / "original").write_bytes(b"abc")
    with pytest.raises(AssertionError, match="the copy is identical"):
        copying.timed(wrong_copy, source, tmp_path / "round")
    assert not (tmp_path / "round").exists()


@pytest.mark.parametrize("line", ["computing 3 000001", "waiting 0.0001 000001"])
def test_each_line_for_executors_is_one_result(line):
    assert executors.work(line).endswith("000001")


@needs_find
@pytest.mark.trial
@pytest.mark.parametrize(("least", "code"), [(0.0, 0), (10.0**9, 1)])
def test_a_scan_is_judged_by_its_share_of_the_speed_of_find(least, code, monkeypatch, capsys):
    monkeypatch.setattr(finding, "IN_FOLDER", 10)
    monkeypatch.setattr(finding, "LEAST_OF_FIND", least)
    assert finding.main(["--files", "20", "--rounds", "1", "--seen", "20", "--json"]) == code
    measured = json.loads(capsys.readouterr().out)
    assert measured["files"] == 20
    assert measured["of_find"] == pytest.approx(measured["find"] / measured["first_scan"])
    assert measured["bytes_known"] > 12 + 16
    seen = measured["seen"]
    assert (seen["files"], seen["most_written"]) == (20, len('{"known": ""}') + 20 * 16)


@pytest.mark.parametrize("name", formats.READERS)
def test_the_files_of_all_formats_hold_the_same_rows(name, tmp_path):
    path = formats.write_files(tmp_path, 50)[name]
    context = {"columns": formats.TAKEN, "where": value.field("price") >= formats.LEAST_PRICE}
    types = {} if name == "parquet" else {"types": formats.TYPES}
    reader = Alone(formats.READERS[name](reader_context={**context, **types}))
    length = path.stat().st_size
    reader.work(Block(0, str(path), 0, length, facts={"length": length}))
    kept = formats.table_of(50).filter(pc.field("price") >= formats.LEAST_PRICE).select(formats.TAKEN)
    assert [record.value for record in reader.sent()] == kept.to_pylist()


def test_the_rows_for_tables_are_those_of_the_record_type(tmp_path):
    tables.write_rows(tmp_path / "rows.parquet", 20)
    rows = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [tables.Row(**row).id for row in rows] == list(range(20))


def test_a_task_about_messages_is_read_as_it_was_written(tmp_path):
    task = Task("127.0.0.1:9092", "source", "target")
    task.write(tmp_path / "task")
    assert task_in(tmp_path / "task") == task


@pytest.mark.trial
@pytest.mark.spark
def test_each_contestant_reads_all_small_files():
    command = [sys.executable, "-m", "bench", "small_files", "--files", "20", "--rounds", "1", "--json"]
    measured = json.loads(run_program(command, check=False, seconds=600).stdout)
    assert (measured["files"], list(measured["seconds"])) == (20, [small_files.DAGKIT, *small_files.LEAST])
