"""Files of a commit are put in place once, even if the process is killed meanwhile or the files are taken away."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.engine.files import publish as gathering
from dagkit.engine.files.pieces import PiecesLost
from dagkit.engine.files.publish import (
    MOST_PIECES,
    gathered,
    is_begun,
    last_ones,
    note_begun,
    note_finished,
    put_in_place,
    still_to_place,
)
from dagkit.engine.files.staging import Part, StagingPlace
from dagkit.engine.program.points import Point
from dagkit.launching import Machine, launch
from dagkit.ledger import SequenceTaken
from dagkit.testing.crashes import Crash, CrashAfter
from dagkit_operators import PartWriter
from tests.engine.cast import Around, Desk, Script, files_given, files_in, lines_through_filter, some_lines
from tests.engine.files.cast import part
from tests.engine.parts.cast import chained
from tests.old_files import aged


def with_lines(home: Path) -> Desk:
    files_given(home, some_lines(12))
    return Desk(home, lines_through_filter(home, threshold=9), overlap=1)


@dataclass
class Told(Around):
    """A backend that records the number of files of each call."""

    calls: list[int]

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


def test_a_window_whose_end_a_power_cut_removed_is_not_missed(tmp_path):
    desk = with_lines(tmp_path)
    desk.run()
    (finished,) = Path(desk.place, "finished").iterdir()
    finished.rmdir()
    for file in desk.out.iterdir():
        file.unlink()
    desk.run()
    assert desk.troubles() == []


def test_what_another_driver_noted_of_a_later_window_stays(tmp_path):
    place = str(tmp_path)
    for window in (1, 2, 3):
        note_begun(place, window, durable=True)
    note_finished(place, 2)
    assert [is_begun(place, window) for window in (1, 2, 3)] == [False, True, True]
    note_finished(place, 3)
    assert [is_begun(place, window) for window in (1, 2, 3)] == [False, False, True]


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


def written(home: Path, windows: int) -> Desk:
    """One number in each window, into one file that is whole at the end."""
    script = Script(looks=tuple((number,) for number in range(windows)))
    writer = PartWriter(file_path=str(home / "out"), format=lambda number: f"{number}")
    return Desk(home, chained({"script": script, "writer": writer}))


def assert_whole(desk: Desk, windows: int) -> None:
    assert desk.outputs() == {"part-00000-00000": "".join(f"{number}\n" for number in range(windows)).encode()}
    assert (desk.faults(), desk.leftovers()) == ([], [])


@pytest.mark.slow
def test_the_checkpoint_stays_small_however_many_windows_write_to_a_file(tmp_path):
    desk = written(tmp_path, 300)
    for _ in range(3):
        loop, ledger = desk.run(windows=100), desk.ledger()
        (application,) = set(ledger.names()) - {"script"}
        assert len(ledger.chain(application).checkpoint()) < 10_000
        assert len(loop.checkpoint.files) <= MOST_PIECES + 1
        assert len(files_in(Path(desk.place) / "staging")) <= MOST_PIECES + 1
    desk.run()
    assert_whole(desk, 300)


@pytest.mark.parametrize("point", Point)
def test_a_kill_around_it_loses_and_doubles_nothing(tmp_path, monkeypatch, point):
    monkeypatch.setattr(gathering, "MOST_PIECES", 2)
    desk = written(tmp_path, 9)
    desk.crash(*(CrashAfter(point, window) for window in range(2, 10)))
    desk.run()
    assert_whole(desk, 9)


def pieces_of_windows(home: Path, lengths: list[int], *, block: int | None = None) -> tuple[Part, ...]:
    made = []
    for window, length in enumerate(lengths):
        folder = home / "staging" / f"{window}" / "a" / "t"
        folder.mkdir(parents=True)
        (folder / "0.part").write_text(f"{window % 10}" * length)
        name = f"staging/{window}/a/t/0.part"
        made.append(part(part=name, length=length, window=window, block=block))
    return tuple(made)


def test_pieces_of_a_block_stay_what_they_are(tmp_path):
    files = pieces_of_windows(tmp_path, [1] * 50, block=1)
    assert gathered(files, StagingPlace(str(tmp_path), 51, "g")) == (list(files), [])


def test_pieces_are_there_until_they_are_forgotten(tmp_path):
    files = pieces_of_windows(tmp_path, [2] * 40)
    (joined,), replaced = gathered(files, StagingPlace(str(tmp_path), 41, "g"))
    assert (joined.length, joined.window) == (80, 39)
    whole = tmp_path / joined.part
    assert whole.read_text() == "".join(f"{window % 10}" * 2 for window in range(40))
    assert whole.relative_to(tmp_path).parts[:3] == ("staging", "41", "g")
    assert replaced == list(files)
    assert len(files_in(tmp_path)) == 41


def test_a_piece_that_is_gone_is_missed(tmp_path):
    files = pieces_of_windows(tmp_path, [2] * 40)
    (tmp_path / files[7].part).unlink()
    with pytest.raises(PiecesLost, match="staged pieces of f are gone"):
        gathered(files, StagingPlace(str(tmp_path), 41, "g"))


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=60))
def test_no_byte_is_copied_before_as_much_has_come_after_it(lengths):
    made = [part(part=f"{number}", length=length) for number, length in enumerate(lengths)]
    chosen = last_ones(made)
    assert chosen == made[len(made) - len(chosen) :]
    assert len(chosen) >= 2
    left = made[: len(made) - len(chosen)]
    assert all(each.length > sum(other.length for other in made[n + 1 :]) for n, each in enumerate(left))
