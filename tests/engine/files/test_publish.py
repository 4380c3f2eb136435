"""Files of a commit are put in place once, even if the process is killed meanwhile or the files are taken away."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag
from dagkit.compiler import Compilation
from dagkit.engine.files.pieces import PiecesLost
from dagkit.engine.files.publish import is_begun, note_begun, note_finished, put_in_place, still_to_place
from dagkit.engine.files.staging import Part
from dagkit.engine.points import Point
from dagkit.engine.worker.protocol import Answer, Backend, Cores, WindowTask
from dagkit.launching import Machine, launch
from dagkit.ledger import SequenceTaken
from dagkit.testing.crashes import Crash, CrashAfter
from dagkit_operators import PartWriter
from tests.engine.cast import Desk, Script, lines_through_filter, some_lines


def with_lines(home: Path) -> Desk:
    (home / "in").mkdir(parents=True)
    (home / "in" / "a").write_text(some_lines(12))
    return Desk(home, lines_through_filter(home, threshold=9), overlap=1)


@dataclass
class Told:
    """A backend that records the number of files of each call."""

    inner: Backend
    calls: list[int] = field(default_factory=list)

    def load(self, compilation: Compilation) -> None:
        self.inner.load(compilation)

    def cores(self) -> Cores:
        return self.inner.cores()

    def run(self, assignment: WindowTask) -> Answer:
        return self.inner.run(assignment)

    def running(self) -> Any:
        return self.inner.running()

    def put_in_place(self, files: Any, application_path: str, *, durable: bool) -> None:
        self.calls.append(len(files))
        self.inner.put_in_place(files, application_path, durable=durable)

    def close(self) -> None:
        self.inner.close()


def test_files_are_put_in_place_in_the_same_way_whether_a_test_probes_or_not(tmp_path):
    calls = []
    for name, probe in (("probed", lambda *_: None), ("alone", None)):
        told: list[Told] = []
        desk = with_lines(tmp_path / name)
        desk.backend = lambda backend, told=told: told.append(Told(backend)) or told[-1]  # type: ignore[misc, func-returns-value]
        desk.run(probe=probe)
        calls.append(told[-1].calls)
    assert calls[0] == calls[1] == [1, 2]


def taking_and_crashing(desk: Desk, taken: Callable[[list[Path]], list[Path]]) -> Callable[[Point, int], None]:
    """A consumer takes files that are there, and then the run is killed."""

    def probe(point: Point, window_id: int) -> None:
        there = sorted(desk.out.iterdir()) if desk.out.exists() else []
        if point is Point.HALF_FINISHED:
            for file in taken(there):
                file.unlink()
            raise Crash("here")

    return probe


def test_a_file_that_was_taken_away_before_all_were_in_place_is_not_missed(tmp_path, caplog):
    desk = with_lines(tmp_path)
    with pytest.raises(Crash):
        desk.run(probe=taking_and_crashing(desk, lambda there: there))
    with caplog.at_level(logging.WARNING):
        desk.run()
    assert "was put in place, and has been removed or changed since" in caplog.text
    assert len(desk.outputs()) == 2
    assert (desk.faults(), desk.leftovers()) == ([], [])


def test_a_file_that_lost_its_pieces_before_anybody_had_begun_is_missed(tmp_path):
    desk = with_lines(tmp_path)
    assert desk.crash(CrashAfter(Point.APPENDED)) == 1
    next(Path(desk.place).glob("staging/*/*/*/*.part")).unlink()
    for _ in range(2):
        with pytest.raises(PiecesLost):
            desk.run()


def parts(home: Path, count: int) -> dict[str, list[Part]]:
    """A file of several committed pieces."""
    for number in range(count):
        (home / f"{number}").write_text("piece")
    file = str(home / "out" / "f")
    return {file: [Part(operator="w", file=file, part=f"{n}", length=5, order=n) for n in range(count)]}


@pytest.mark.parametrize(
    ("gone", "goes_on"),
    [
        pytest.param([], True, id="it was not placed yet"),
        pytest.param([0], False, id="its pieces were about to go"),
        pytest.param([0, 1, 2], False, id="it was in place, and taken"),
        pytest.param([1], True, id="a piece of it was lost"),
        pytest.param([2], True, id="the last piece was lost"),
    ],
)
def test_pieces_go_in_their_order_once_the_file_is_whole(tmp_path, gone, *, goes_on):
    files = parts(tmp_path, 3)
    for number in gone:
        (tmp_path / f"{number}").unlink()
    rest = still_to_place(files, str(tmp_path))
    assert bool(rest) == goes_on
    if not goes_on:
        assert [path.name for path in tmp_path.iterdir()] == []
    elif gone:
        with pytest.raises(PiecesLost):
            put_in_place(rest, str(tmp_path), durable=False)


def test_a_file_in_place_whose_pieces_are_left_is_finished_as_ever(tmp_path):
    files = parts(tmp_path, 2)
    put_in_place(files, str(tmp_path), durable=False)
    (tmp_path / "1").write_text("piece")
    assert still_to_place(files, str(tmp_path)) == files
    put_in_place(files, str(tmp_path), durable=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_what_another_driver_noted_of_a_later_window_stays(tmp_path):
    place = str(tmp_path)
    for window in (1, 2):
        note_begun(place, window, durable=True)
    note_finished(place, 1)
    assert [is_begun(place, window) for window in (1, 2)] == [False, True]
    note_finished(place, 2)
    assert not is_begun(place, 2)


def test_a_driver_that_was_overtaken_reports_that_and_not_missing_files(tmp_path):
    desk = with_lines(tmp_path)
    came = []

    def probe(point: Point, window_id: int) -> None:
        if point is Point.APPENDED and not came:
            (tmp_path / "in" / "b").write_text(some_lines(9))
            came.append(desk.run())
            for file in desk.out.iterdir():
                file.unlink()

    with pytest.raises(SequenceTaken):
        desk.run(probe=probe)


@pytest.mark.parametrize(
    ("application", "out"),
    [
        pytest.param("memory://finishing/app", "memory://finishing/out", id="all in a store"),
        pytest.param("memory://finishing/app", "", id="the application in a store, its files here"),
        pytest.param("", "memory://finishing/out", id="the application here, its files in a store"),
    ],
)
def test_an_application_runs_wherever_its_folder_and_its_files_lie(tmp_path, application, out):
    import fsspec  # noqa: PLC0415 - only here

    def draw(dag: Dag, conf: object) -> None:
        script = dag.add_operator("script", Script(looks=tuple((number,) for number in range(40))))
        writer = PartWriter(file_path=out or str(tmp_path / "out"), format=lambda number: f"{number}", max_length=95)
        script >> dag.add_operator("writer", writer)

    place, store = application or str(tmp_path / "app"), fsspec.filesystem("memory")
    for windows in (36, None):
        launch(draw, until="once", path=place, windows=windows, machine=Machine("reference"))
    if out:
        contents = [store.cat_file(file) for file in sorted(store.find("/finishing/out"))]
    else:
        contents = [file.read_bytes() for file in sorted((tmp_path / "out").iterdir())]
    assert len(contents) == 2
    assert b"".join(contents) == "".join(f"{number}\n" for number in range(40)).encode()
    assert not [file for file in store.find("/") if "staging" in file]
    store.store.clear()
