"""What is looked at before a commit: no file takes the place of another one, and nothing is named that is not there."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from dagkit.engine.files import checks
from dagkit.engine.files.checks import refuse_blocked, when_began
from dagkit.engine.files.pieces import look_at
from dagkit.engine.program.points import Point
from dagkit.engine.record.run_events import RunEvent
from dagkit.engine.record.whole_files import refuse_shared
from dagkit.engine.worker.protocol import Answer, WindowTask
from dagkit.errors import RunFailure
from dagkit.ledger import SequenceTaken
from dagkit.testing.crashes import CrashAfter
from tests.engine.cast import Around, Desk, Script, files_given, lines_through_filter, some_lines
from tests.engine.files.cast import Notes, Unfinished, part, staging
from tests.engine.parts.cast import chained


def noted(home: Path, *looks: tuple[int, ...], kind: type[Unfinished] = Notes, out: str | Path = "out") -> Desk:
    """Numbers that are written to files; two windows do not overlap."""
    chain = {"script": Script(looks=looks), "notes": kind(file_path=str(out))}
    return Desk(home, chained(chain), overlap=1)


def of_another_life(out: Path, *names: str) -> None:
    out.mkdir()
    for name in names:
        (out / name).write_bytes(b"of another life")
        os.utime(out / name, (1, 1))


def test_a_file_that_was_whole_is_not_replaced(tmp_path):
    desk = noted(tmp_path, (101, 102), (201,), (103,))
    desk.run(windows=2)
    told = r"notes wrote to .*out/1 in window 3, and a complete file of that name was made"
    for _ in range(2):
        with pytest.raises(RunFailure, match=told):
            desk.run()
        assert desk.outputs() == {"1": b"101 102 ", "2": b"201 "}
        assert desk.loop().checkpoint.window == 2
    (desk.out / "1").rename(tmp_path / "taken")
    desk.run()
    assert desk.outputs() == {"1": b"103 ", "2": b"201 "}
    assert (desk.faults(), desk.leftovers()) == ([], [])


@pytest.mark.parametrize("point", [Point.STAGED, Point.APPENDED, Point.HALF_FINISHED, Point.FINISHED])
def test_what_a_crash_left_to_be_put_in_place_is_no_second_file(tmp_path, point):
    desk = noted(tmp_path, (101, 201), (301, 401))
    assert desk.crash(CrashAfter(point, 1), CrashAfter(point, 2)) == 2
    desk.run()
    assert desk.outputs() == {"1": b"101 ", "2": b"201 ", "3": b"301 ", "4": b"401 "}


def test_files_that_were_begun_in_another_folder_are_reported(tmp_path, caplog):
    noted(tmp_path, (101,), (102,), kind=Unfinished).run(windows=1)
    noted(tmp_path, (101,), (102,), kind=Unfinished).run(windows=1)
    assert caplog.text == ""
    noted(tmp_path, (101,), (102,), kind=Unfinished, out="moved").run()
    assert "notes completes 1 file that earlier windows began in another folder" in caplog.text
    assert f"such as {tmp_path}/out/1: if this application was moved or copied" in caplog.text


@pytest.mark.parametrize("below", ["nope", "nope/further", "."], ids=["a folder", "a folder in it", "the place itself"])
def test_a_folder_that_cannot_be_written_to_is_reported_before_anything_is_read(tmp_path, below):
    seen: list[RunEvent] = []
    (tmp_path / "file").touch()
    desk = noted(tmp_path, (101,), out=tmp_path / "file" / below)
    with pytest.raises(RunFailure, match=r"^notes cannot write to \S*file\S*: \S*file is a file, not a folder"):
        desk.run(observers=[seen.append])
    assert (seen, desk.loop().checkpoint.window) == ([], 0)


@pytest.mark.parametrize(
    ("out", "place"),
    [("hdfs://host:1/out?user=ada", "hdfs://host:1/out"), ("nothing://host/out", "nothing://host/out")],
)
def test_a_filesystem_that_is_not_installed_is_reported_in_one_sentence(out, place, tmp_path, monkeypatch):
    for name in ("HADOOP_HOME", "ARROW_LIBHDFS_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RunFailure, match=r"\[folder-refused\]") as caught:
        noted(tmp_path, (101,), out=out).run()
    problem, scheme = str(caught.value).splitlines()[0], place.partition(":")[0]
    assert problem.startswith(f"notes cannot write to {place}: the filesystem of {scheme}:// is not installed here: ")
    assert "dlopen" not in str(caught.value)
    assert ("JAVA_HOME" in problem) == (scheme == "hdfs")


def test_the_folder_is_there_from_the_beginning(tmp_path):
    there: list[bool] = []
    desk = noted(tmp_path, (101,), out="out/deep")
    desk.run(observers=[lambda _: there.append((tmp_path / "out" / "deep").is_dir())])
    assert all(there)
    assert desk.outputs() == {"deep/1": b"101 "}


def test_files_of_another_life_are_replaced_and_that_is_reported_once(tmp_path, caplog):
    out = tmp_path / "out"
    of_another_life(out, "1", "2", "9")
    desk = noted(tmp_path, (101, 201), (301,))
    desk.run()
    assert desk.outputs() == {"1": b"101 ", "2": b"201 ", "3": b"301 ", "9": b"of another life"}
    words = f"{out / '1'} and 1 more: older than this application, and replaced by what it writes"
    assert [record.getMessage() for record in caplog.records] == [words]


def test_of_a_file_that_is_written_in_many_windows_it_is_reported_once(tmp_path, caplog):
    of_another_life(tmp_path / "out", "1")
    noted(tmp_path, (101,), (102,), kind=Unfinished).run()
    assert caplog.text.count("older than this application") == 1


def noted_by_two(home: Path, *looks: tuple[tuple[int, ...], ...]) -> Desk:
    """Each of two operators writes numbers to files in the same folder."""
    chains = [{f"script{n}": Script(looks=look), f"notes{n}": Notes(file_path="out")} for n, look in enumerate(looks)]
    return Desk(home, chained(*chains), overlap=1)


def test_two_operators_do_not_write_one_file(tmp_path):
    desk = noted_by_two(tmp_path, ((101,),), ((102,),))
    with pytest.raises(RunFailure, match=r"out/1 was written by notes0 and notes1.*\n.* give each of them a file_path"):
        desk.run()
    assert (desk.outputs(), desk.loop().checkpoint.window) == ({}, 0)


def test_two_operators_do_not_write_one_file_in_two_windows(tmp_path):
    desk = noted_by_two(tmp_path, ((101,), ()), ((201,), (102,)))
    desk.run(windows=1)
    with pytest.raises(RunFailure, match=r"notes1 wrote to .*out/1 in window 2"):
        desk.run()
    assert desk.outputs() == {"1": b"101 ", "2": b"201 "}


def test_an_unfinished_file_is_there_when_a_launch_ends_and_its_name_is_used_up(tmp_path):
    looks = [(101,), (102,), (201,)]
    first = noted(tmp_path, *looks, kind=Unfinished)
    first.run(windows=2)  # stopped: it goes on
    assert first.outputs() == {}
    windows = first.run().checkpoint.window
    assert first.outputs() == {"1": b"101 102 ", "2": b"201 "}
    assert first.run().checkpoint.window == windows  # nothing came, and nothing is open
    noted(tmp_path, *looks, (301,), kind=Unfinished).run()
    assert first.outputs() == {"1": b"101 102 ", "2": b"201 ", "3": b"301 "}
    with pytest.raises(RunFailure, match=r"notes wrote to .*out/1"):
        noted(tmp_path, *looks, (301,), (103,), kind=Unfinished).run()
    assert first.outputs()["1"] == b"101 102 "


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param([], [part(block=1), part(block=2)], id="two blocks"),
        pytest.param([part(block=1)], [part(block=2)], id="two blocks in two windows"),
        pytest.param([part(block=1)], [part()], id="a block and none"),
        pytest.param([part(operator="w")], [part(operator="x")], id="two operators"),
    ],
)
def test_a_file_is_of_one(before, now):
    with pytest.raises(RunFailure, match=r"\[file-shared\]"):
        refuse_shared(before, now, {"w", "x"})


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param([part(block=1)], [part(block=1)], id="one block in two windows"),
        pytest.param([part(block=1)], [part(part="")], id="a block's file that is finished by name"),
        pytest.param([part(operator="old")], [part(operator="w")], id="an operator that was renamed"),
        pytest.param([part(block=1), part(block=2)], [part("g")], id="nothing was written to it"),
    ],
)
def test_an_application_that_shares_no_folder_continues(before, now):
    refuse_shared(before, now, {"w", "x"})


def test_a_name_is_opened_for_one_block(tmp_path):
    stage = staging(tmp_path)
    files = stage.files("writer", "out")
    files.open("x", block=1)
    with pytest.raises(RunFailure, match="by writer for element 1 and element 2"):
        files.open("x", block=2)
    stage.abandon()


# ---- files and folders of one name


@pytest.mark.parametrize(
    ("incomplete", "written"),
    [
        pytest.param([], ["a", "a/b"], id="below a file of the same window"),
        pytest.param(["a"], ["a/b"], id="below an incomplete file"),
        pytest.param(["a/b"], ["a"], id="a folder of an incomplete file"),
        pytest.param([], ["file/b"], id="below a file that is there"),
        pytest.param([], ["folder"], id="a folder that is there"),
    ],
)
@pytest.mark.parametrize("most", [0, 1000], ids="{} folders are remembered".format)
def test_a_file_that_needs_the_name_of_a_folder_is_refused(tmp_path, monkeypatch, incomplete, written, most):
    monkeypatch.setattr(checks, "MOST_FOLDERS", most)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    known = set()
    earlier = [part(f"{tmp_path}/{name}") for name in incomplete]
    for window in range(2):
        refuse_blocked([part(f"{tmp_path}/{window}/f")], earlier, known)
    with pytest.raises(RunFailure, match=r"\[file-blocked\]"):
        refuse_blocked([part(f"{tmp_path}/{name}") for name in written], earlier, known)


def test_folders_of_former_windows_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "MOST_FOLDERS", 50)
    known = set()
    for window in range(500):
        refuse_blocked([part(f"{tmp_path}/{window}/f")], [], known)
    assert 0 < len(known) <= 51


# ---- pieces that are not there


@dataclass
class Apart(Around):
    """A backend whose workers stage where the driver does not look."""

    place: str
    cut: bool = False

    def run(self, assignment: WindowTask) -> Answer:
        answer = self.inner.run(assignment)
        for piece in Path(self.place).glob("staging/*/*/*/*.part"):
            if self.cut:
                piece.write_bytes(piece.read_bytes()[:-1])
            else:
                piece.unlink()
        return answer


@pytest.mark.parametrize("cut", [False, True], ids=["gone", "too short"])
def test_pieces_that_the_driver_does_not_see_are_not_committed(tmp_path, cut):
    files_given(tmp_path, some_lines(9))
    desk = Desk(tmp_path, lines_through_filter(tmp_path))
    apart = Desk(tmp_path, desk.draw, backend=lambda backend: Apart(backend, desk.place, cut))
    told = r"2 of 2 pieces that window 1 staged are not in .*\n  help: .* on storage that the driver"
    with pytest.raises(RunFailure, match=told):
        apart.run()
    assert desk.loop().checkpoint.window == 0
    desk.run()
    assert sorted(desk.outputs()) == ["0", "1"]
    assert desk.faults() == []


def test_pieces_that_another_driver_swept_are_reported_as_that(tmp_path):
    desk, came = noted(tmp_path, (101,)), []

    def probe(point: Point, window_id: int) -> None:
        if point is Point.STAGED and not came:
            came.append(desk.run())

    with pytest.raises(SequenceTaken):
        desk.run(probe=probe)
    assert desk.outputs() == {"1": b"101 "}


def test_when_an_application_began_outlives_its_folder_being_copied(tmp_path):
    began = when_began(str(tmp_path / "app"))
    shutil.copytree(tmp_path / "app", tmp_path / "copy")
    assert when_began(str(tmp_path / "app")) == when_began(str(tmp_path / "copy")) == began
    (tmp_path / "later").touch()
    later, absent, folder = look_at([str(tmp_path / name) for name in ("later", "absent", ".")])
    assert later.changed >= began
    assert (absent, folder) == (None, None)
