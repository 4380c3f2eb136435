"""A file that stays unfinished is kept in few pieces, whatever process is killed while it joins them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.engine.files import publish as gathering
from dagkit.engine.files.pieces import PiecesLost
from dagkit.engine.files.publish import MOST_PIECES, gathered, last_ones
from dagkit.engine.files.staging import Part, StagingPlace
from dagkit.engine.program.points import Point
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import PartWriter
from tests.engine.cast import Desk, Script, files_in
from tests.engine.files.cast import part
from tests.engine.parts.cast import chained


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


def parts(home: Path, lengths: list[int], *, block: int | None = None) -> tuple[Part, ...]:
    made = []
    for window, length in enumerate(lengths):
        folder = home / "staging" / f"{window}" / "a" / "t"
        folder.mkdir(parents=True)
        (folder / "0.part").write_text(f"{window % 10}" * length)
        name = f"staging/{window}/a/t/0.part"
        made.append(part(part=name, length=length, window=window, block=block))
    return tuple(made)


def test_pieces_of_a_block_stay_what_they_are(tmp_path):
    files = parts(tmp_path, [1] * 50, block=1)
    assert gathered(files, StagingPlace(str(tmp_path), 51, "g")) == (list(files), [])


def test_pieces_are_there_until_they_are_forgotten(tmp_path):
    files = parts(tmp_path, [2] * 40)
    (joined,), replaced = gathered(files, StagingPlace(str(tmp_path), 41, "g"))
    assert (joined.length, joined.window) == (80, 39)
    whole = tmp_path / joined.part
    assert whole.read_text() == "".join(f"{window % 10}" * 2 for window in range(40))
    assert whole.relative_to(tmp_path).parts[:3] == ("staging", "41", "g")
    assert replaced == list(files)
    assert len(files_in(tmp_path)) == 41


def test_a_piece_that_is_gone_is_missed(tmp_path):
    files = parts(tmp_path, [2] * 40)
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
