"""A folder or file that a scan may not read is left out and listed, and is read once it may; the rest is read."""

from pathlib import Path
from typing import Any

import pytest

from dagkit.compiler import compile_application
from dagkit.engine.parts.requests import Retry
from dagkit.errors import RunFailure
from dagkit.runs.inventory.listing import listed, states_at
from dagkit.testing import FakeClock
from dagkit_operators import (
    FileInfo,
    FileSplitterBase,
    FileSplitterInput,
    Items,
    LineReader,
    Map,
    MatchFiles,
    ReadFiles,
)
from tests.cases import cases
from tests.engine.cast import Collect, Desk, arrived, chain
from tests.engine.poison_cast import aside, ask_of
from tests.operators.filesystem.test_access import without_rights
from tests.operators.reading.test_bad_files import put, shared_folder

__all__ = ["shared_folder"]


class Values(Collect):
    def process(self, item: Any) -> None:
        self.arrived.append(getattr(item, "value", item))


def splitting(home: Path, **given: Any) -> dict[str, Any]:
    return {"find": FileSplitterInput(scanner={"files": [str(home / "in")]}, **given), "read": LineReader()}


def matching(home: Path, **given: Any) -> dict[str, Any]:
    return {"items": Items(items=[f"{home}/in/**/*.txt"]), "find": MatchFiles(**given), "read": ReadFiles()}


@pytest.fixture(autouse=True, scope="module")
def imported(tmp_path_factory):
    """Import all modules before the tests become a user who may not read them."""
    for number, found_by in enumerate((splitting, matching, dividing_for_receipts)):
        desk = desk_of(found_by, tmp_path_factory.mktemp(str(number)))
        desk.run()
        states(desk)


BOTH = pytest.mark.parametrize("found_by", [splitting, matching])


def desk_of(found_by: Any, home: Path, on_bad_file: str = "quarantine") -> Desk:
    """A file beside a folder, and one in the folder."""
    (home / "in").mkdir(exist_ok=True)
    put(home, "a.txt", b"1\n")
    put(home, "sub/b.txt", b"2\n")
    return Desk(home, chain(**found_by(home, on_bad_file=on_bad_file), collect=Values()), clock=FakeClock())


def states(desk: Desk) -> dict[str, tuple[str, str]]:
    there = listed(compile_application(desk.draw), desk.ledger(), str(desk.home))
    return {str(Path(file.path).relative_to(desk.home / "in")): (file.state, file.reason) for file in there}


@BOTH
@pytest.mark.parametrize("kept", [1000, 0], ids=["few files are gone", "many files are gone"])
def test_the_rest_is_read_and_the_folder_is_listed_until_it_may_be_read(found_by, kept, shared_folder, monkeypatch):
    monkeypatch.setattr("dagkit_operators.finding.splitter.KEPT_OF_GONE", kept)
    monkeypatch.setattr("dagkit_operators.finding.match.KEPT_OF_GONE", kept)
    desk, folder = desk_of(found_by, shared_folder), shared_folder / "in" / "sub"
    reason = "it cannot be read: Permission denied (on_bad_file)"
    with without_rights(folder):
        assert arrived(desk.run()) == ["1"]
        assert states(desk)["sub"] == ("quarantined", reason)
        (state,) = states_at(compile_application(desk.draw), desk.ledger(), str(folder / "b.txt"))[:1] or [None]
        assert state is None or state.state == "quarantined"
    assert sorted(arrived(desk.run())) == ["1", "2"]
    put(shared_folder, "sub/c.txt", b"3\n")
    with without_rights(folder):
        assert sorted(arrived(desk.run())) == ["1", "2"]
        assert states(desk)["sub/b.txt"][0] != "gone"
    assert sorted(arrived(desk.run())) == ["1", "2", "3"], "no file of the folder is read twice"
    assert desk.faults() == []


def test_a_link_into_a_folder_that_may_not_be_read_is_left_out_alone(shared_folder):
    desk, folder = desk_of(splitting, shared_folder), shared_folder / "other"
    (folder / "inner").mkdir(parents=True)
    (shared_folder / "in" / "link").symlink_to(folder / "inner")
    with without_rights(folder):
        assert sorted(arrived(desk.run())) == ["1", "2"]
        assert states(desk)["link"][0] == "quarantined"


def receiving(home: Path, **given: Any) -> dict[str, Any]:
    return splitting(home, receipts=str(home / "receipts"), **given)


def comparing(home: Path, **given: Any) -> dict[str, Any]:
    scanner = {"files": [str(home / "in")], "skip_known_content": True}
    return {"find": FileSplitterInput(scanner=scanner, **given), "read": LineReader()}


def dividing(home: Path, **given: Any) -> dict[str, Any]:
    paths = Items[str](items=[str(home / "in" / name) for name in ("a.txt", "sub/b.txt")])
    infos = {"paths": paths, "infos": Map[str, FileInfo](FileInfo)}
    return {**infos, "find": FileSplitterBase(**given), "read": LineReader()}


def dividing_for_receipts(home: Path, **given: Any) -> dict[str, Any]:
    return dividing(home, receipts=str(home / "receipts"), **given)


@cases(
    "found_by, bad",
    ("a folder of a splitter", splitting, "sub"),
    ("a folder of a pattern", matching, "sub"),
    ("a file for a receipt", receiving, "sub/b.txt"),
    ("a file that is compared", comparing, "sub/b.txt"),
    ("a file that arrives", dividing, "sub"),
)
def test_without_the_setting_the_launch_stops_and_names_it(found_by, bad, shared_folder):
    desk, setting = desk_of(found_by, shared_folder, "stop"), "set on_bad_file of this operator to 'quarantine'"
    with without_rights(shared_folder / "in" / bad), pytest.raises(RunFailure, match="Permission denied") as failed:
        desk.run()
    assert (setting in f"{failed.value}{failed.value.__cause__}") is (found_by is not dividing)


@pytest.mark.parametrize("found_by", [receiving, comparing, matching])
def test_a_file_that_a_scan_may_not_open_is_left_out_until_it_may(found_by, shared_folder):
    desk, bad = desk_of(found_by, shared_folder), shared_folder / "in" / "sub" / "b.txt"
    with without_rights(bad):
        assert arrived(desk.run()) == ["1"]
        assert states(desk)["sub/b.txt"] == ("quarantined", "it cannot be read: Permission denied (on_bad_file)")
    assert sorted(arrived(desk.run())) == ["1", "2"]
    assert desk.faults() == []


@BOTH
def test_without_the_setting_what_may_not_be_read_is_listed_with_what_may(found_by, shared_folder):
    desk, folder = desk_of(found_by, shared_folder, "stop"), shared_folder / "in" / "sub"
    desk.run()
    put(shared_folder, "c.txt", b"3\n")
    reason = "it cannot be read: Permission denied; a launch stops here, unless on_bad_file is 'quarantine'"
    with without_rights(folder):
        there = states(desk)
    assert there["sub"] == ("pending", reason)
    assert {name: state for name, (state, _) in there.items()} == {
        "a.txt": "read",
        "c.txt": "new",
        "sub": "pending",
        "sub/b.txt": "read",
    }


def aside_of(desk: Desk) -> list[str]:
    return [Path(each.item.source or "").name for each in aside(desk)]


@cases("found_by, bad", ("its status", dividing, "sub"), ("its content", dividing_for_receipts, "sub/b.txt"))
def test_a_file_that_arrives_and_cannot_be_divided_is_set_aside_and_read_once_it_is_retried(
    found_by, bad, shared_folder
):
    desk = desk_of(found_by, shared_folder)
    with without_rights(shared_folder / "in" / bad):
        assert arrived(desk.run()) == ["1"]
        ask_of(desk, Retry(by="ada"))
        assert (arrived(desk.run()), aside_of(desk)) == (["1"], ["b.txt"])
    ask_of(desk, Retry(by="ada"))
    assert (sorted(arrived(desk.run())), aside_of(desk)) == (["1", "2"], [])
    assert desk.faults() == []


def test_a_file_that_arrives_and_does_not_exist_is_set_aside_where_asked(tmp_path):
    desk = desk_of(dividing, tmp_path)
    (tmp_path / "in" / "sub" / "b.txt").unlink()
    assert (arrived(desk.run()), aside_of(desk)) == (["1"], ["b.txt"])
