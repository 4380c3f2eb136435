"""Files of a commit are put in place once, even if the process is killed meanwhile or the files are taken away."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pytest

from dagkit.engine.files.pieces import PiecesLost
from dagkit.engine.files.publish import is_begun, note_begun, note_finished, put_in_place, still_to_place
from dagkit.engine.files.staging import Part
from dagkit.engine.program.points import Point
from dagkit.engine.worker.protocol import Backend
from dagkit.launching import Machine, launch
from dagkit.ledger import SequenceTaken
from dagkit.testing.crashes import Crash, CrashAfter
from dagkit_operators import PartWriter
from tests.engine.cast import Desk, Script, lines_through_filter, some_lines
from tests.engine.files.cast import part
from tests.engine.parts.cast import chained
from tests.old_files import aged


def with_lines(home: Path) -> Desk:
    (home / "in").mkdir(parents=True)
    (home / "in" / "a").write_text(some_lines(12))
    aged(home / "in" / "a")
    return Desk(home, lines_through_filter(home, threshold=9), overlap=1)


@dataclass
class Told:
    """A backend that records the number of files of each call."""

    inner: Backend
    calls: list[int]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def put_in_place(self, files: Any, application_path: str, *, durable: bool) -> None:
        self.calls.append(len(files))
        self.inner.put_in_place(files, application_path, durable=durable)


@pytest.mark.parametrize("probe", [lambda *_: None, None], ids=["probed", "alone"])
def test_files_are_put_in_place_in_the_same_way_whether_a_test_probes_or_not(tmp_path, probe):
    desk, calls = with_lines(tmp_path), []
    desk.backend = lambda backend: Told(backend, calls)
    desk.run(probe=probe)
    assert calls == [1, 2]


def test_a_file_that_was_taken_away_before_all_were_in_place_is_not_missed(tmp_path, caplog):
    """A consumer takes the files that are there, and then the run is killed."""
    desk = with_lines(tmp_path)

    def probe(point: Point, window_id: int) -> None:
        if point is Point.HALF_FINISHED:
            for file in desk.out.iterdir():
                file.unlink()
            raise Crash("here")

    with pytest.raises(Crash):
        desk.run(probe=probe)
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
    return {file: [part(file, f"{n}", length=5, order=n) for n in range(count)]}


@pytest.mark.parametrize(
    ("gone", "goes_on"),
    [([], True), ([0], False), ([0, 1, 2], False), ([1], True), ([2], True)],
    ids=["not placed yet", "its pieces were about to go", "in place, and taken", "a piece lost", "the last piece lost"],
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
    desk, came = with_lines(tmp_path), []

    def probe(point: Point, window_id: int) -> None:
        if point is Point.APPENDED and not came:
            (tmp_path / "in" / "b").write_text(some_lines(9))
            aged(tmp_path / "in" / "b")
            came.append(desk.run())
            for file in desk.out.iterdir():
                file.unlink()

    with pytest.raises(SequenceTaken):
        desk.run(probe=probe)


APP, OUT = "memory://finishing/app", "memory://finishing/out"


@pytest.mark.parametrize(
    ("application", "out"),
    [(APP, OUT), (APP, ""), ("", OUT)],
    ids=["all in a store", "the application in a store, its files here", "the application here, its files in a store"],
)
def test_an_application_runs_wherever_its_folder_and_its_files_lie(tmp_path, application, out):
    script = Script(looks=tuple((number,) for number in range(40)))
    writer = PartWriter(file_path=out or str(tmp_path / "out"), format=lambda number: f"{number}", max_length=95)
    draw = chained({"script": script, "writer": writer})
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
