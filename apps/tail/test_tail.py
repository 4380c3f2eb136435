"""Appended lines are read once, on every backend, however often the application is stopped and launched again."""

from pathlib import Path

import pytest

from dagkit import OperatorContext, PortContext, StatelessPartitioner
from dagkit.engine.program.points import Point
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.testing import Crash, CrashAfter
from dagkit_operators import Items, MatchFiles, PartWriter, TailFiles
from tests.applications import launched, on_each_backend, planned, written

HERE = str(Path(__file__).parent)
NOON = "2024-05-01T12:00:00+00:00"


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_text(f"{NOON} INFO one\nno entry\n{NOON} WARN tw")
    (folder / "b.log").write_text(f"{NOON} INFO begun\n")
    return folder


def entries():
    return sorted(written("output/entries"))


def append(path, text):
    with path.open("a") as file:
        file.write(text)


@on_each_backend
def test_each_launch_reads_what_came_since_the_last_one(backend, logs):
    launched(HERE, backend)
    assert entries() == ["INFO begun", "INFO one"]
    assert written("output/rejected") == [f"{logs}/a.log at 35: not enough values to unpack (expected 3, got 2)"]
    append(logs / "a.log", "o\n")
    (logs / "c.log").write_text(f"{NOON} ERROR new\n")
    for _ in range(2):
        launched(HERE, backend)
        assert entries() == ["ERROR new", "INFO begun", "INFO one", "WARN two"]
    assert (len(written("output/rejected")), written("output/lost")) == (1, [])


def test_a_log_that_is_rotated_is_read_to_its_end_and_so_is_the_next(logs):
    launched(HERE, "--reference")
    append(logs / "b.log", f"{NOON} INFO late\n")
    (logs / "b.log").rename(logs / "b.log.1")
    (logs / "b.log").write_text(f"{NOON} INFO another\n")
    launched(HERE, "--reference")
    assert (entries(), written("output/lost")) == (["INFO another", "INFO begun", "INFO late", "INFO one"], [])


def test_a_log_that_was_replaced_is_read_and_possible_losses_are_reported(logs):
    launched(HERE, "--reference")
    (logs / "b.log").write_text(f"{NOON} INFO new\n")
    launched(HERE, "--reference")
    lost = f"{logs}/b.log at 1: is gone, or was cut or rewritten, or another file has its name"
    assert (entries(), written("output/lost")) == (["INFO begun", "INFO new", "INFO one"], [lost])


def test_files_are_found_by_one_and_read_by_two():
    plan = planned(HERE)
    operators = [stage.operators for stage in plan.stages]
    assert operators[:2] == [("Patterns",), ("Match",)]
    assert ("Tail", "Entries") in operators or plan.by_name["Entries"].count == 2
    assert [plan.by_name[name].count for name in ("Match", "Tail", "Entries")] == [1, 2, 2]


@pytest.mark.slow
@pytest.mark.parametrize("point", Point)
def test_wherever_a_launch_is_killed_each_line_is_read_once(point, tmp_path):
    """Lines of which some are not ended yet are written before each launch; every other launch is killed."""
    folder = tmp_path / "logs"
    folder.mkdir()

    def draw(dag, _):
        patterns = dag.add_operator("patterns", Items[str](items=(f"{folder}/*.log",)))
        match = dag.add_operator("match", MatchFiles(continuously=True))
        tail = dag.add_operator("tail", TailFiles(chunk_size=16))
        dag.set_operator_attribute(tail, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        writer = dag.add_operator("writer", PartWriter(file_path=str(tmp_path / "out")))
        dag.set_input_port_attribute(writer.input, PortContext.PARTITION_PARALLEL, True)
        patterns >> match >> tail >> writer

    def run(**options):
        machine = Machine(backend="reference")
        launch(draw, until="once", machine=machine, path=tmp_path / "state", durable=False, **options)

    crashes = 0
    for number in range(6):
        for name in range(3 + number // 2):
            append(folder / f"{name}.log", f"{name}, the rest of {number}\n{name}, line {number}\n")
            append(folder / f"{name}.log", f"{name}, not ended in {number}")
        try:
            run(probe=CrashAfter(point) if number % 2 == 0 else None)
        except Crash:
            crashes += 1
    run()
    ended = [line for path in folder.iterdir() for line in path.read_text().splitlines(keepends=True)]
    read = [line for path in (tmp_path / "out").iterdir() for line in path.read_text().splitlines(keepends=True)]
    assert sorted(read) == sorted(line for line in ended if line.endswith("\n"))
    assert crashes >= 2
    faults = verify(Ledger.open(str(tmp_path / "state"))).faults
    assert [str(fault) for fault in faults if "inf) is pending" not in fault.problem] == []  # a log has no end
