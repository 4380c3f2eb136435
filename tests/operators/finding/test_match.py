"""A pattern becomes the files that it means; each file comes once, for as long as it is the same file.

See also test_file_policy.py.
"""

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fsspec
import pytest
from fsspec.utils import glob_translate
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Context
from dagkit.api.running import Until
from dagkit.compiler import compile_application
from dagkit.engine.parts.requests import GiveUp, ask
from dagkit.engine.record.run_events import Committed, Measured, RunEvent
from dagkit.engine.worker.instances import live
from dagkit.errors import InputUnreadable
from dagkit.ledger import ExecuteTransform
from dagkit.ranges import NEXT_LAUNCH, OFFSET_INFINITY, Deferred, OffsetRange
from dagkit.runs.inventory.listing import listed
from dagkit.testing import Alone, FakeClock
from dagkit_operators import FileInfo, Items, Map, MatchFiles, ReadFiles
from dagkit_operators.filesystem.access import Found
from dagkit_operators.filesystem.identities import EDGE, Identities
from dagkit_operators.filesystem.path_patterns import files_like, matching
from tests.engine.cast import Collect, Desk, arrived, chain
from tests.operators.finding.cast import Matching, write


def identity_of(path: Path) -> str | None:
    return Identities(()).identify(Found(str(path), 0, 0)).identity


@pytest.fixture
def tree(tmp_path):
    for at, name in enumerate(
        ("a.log", "b.log", "b.txt", "sub/a.log", "sub/deep/c.log", ".hidden.log", "d.log.tmp", "[ab].log")
    ):
        write(tmp_path / name, f"{name}\n", at)
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("a.log", ["a.log"]),
        (".hidden.log", [".hidden.log"]),
        ("[ab].log", ["[ab].log"]),  # a file has this name
        ("", ["[ab].log", "a.log", "b.log", "b.txt", "sub/a.log", "sub/deep/c.log"]),
        ("sub", ["sub/a.log", "sub/deep/c.log"]),
        ("*.log", ["[ab].log", "a.log", "b.log"]),
        ("?.txt", ["b.txt"]),
        ("[ac].log", ["a.log"]),
        ("*/*.log", ["sub/a.log"]),
        ("**/*.log", ["[ab].log", "a.log", "b.log", "sub/a.log", "sub/deep/c.log"]),
        ("s*/**/c.log", ["sub/deep/c.log"]),
        ("nothing.*", []),
        ("nowhere/*.log", []),
    ],
)
def test_a_pattern_means_files(pattern, meant, tree):
    found = [str(Path(found.path).relative_to(tree)) for found in files_like(f"{tree}/{pattern}")]
    assert sorted(found) == meant


GLOBS = st.text("[]!*?-a\\^&:.(){}|+$,", max_size=8).filter(lambda pattern: "**" not in pattern)


@given(GLOBS, st.text("a-.[]", min_size=1, max_size=6))
def test_patterns_match_what_fsspec_matches(pattern, name):
    assert bool(matching(pattern)(name)) == (not pattern or re.match(glob_translate(pattern), name) is not None)


@pytest.mark.parametrize("pattern", ["in [1]", "in [1]/*.log", "in [1]/a?/*", "in [1]/**/b.log"])
def test_a_folder_whose_name_looks_like_a_pattern_is_that_folder(pattern, tmp_path):
    path = write(tmp_path / "in [1]" / "a?" / "b.log" if pattern != "in [1]/*.log" else tmp_path / "in [1]" / "b.log")
    assert [file.path for file in files_like(str(tmp_path / pattern))] == [str(path)]


def test_a_pattern_of_many_stars_ends(tmp_path):
    (tmp_path / ("a" * 200)).touch()
    assert list(files_like(f"{tmp_path}/{'a*' * 30}b")) == []


def test_a_relative_pattern_is_taken_from_where_the_launch_was_started_and_not_from_where_a_worker_is(tree):
    match = live(MatchFiles(), {})
    match.setup(Context("application", "match", home=str(tree)))
    found = match.process("sub/*.log", match.tracker("sub/*.log", OffsetRange(0, 1)))
    assert [file.path for file in found] == [f"{tree}/sub/a.log"]


def test_patterns_of_urls_mean_files(tmp_path):
    for name in ("a.log", "b.txt", "sub/c.log"):
        fsspec.filesystem("memory").pipe(f"/{tmp_path.name}/{name}", b"x\n")
    alone = Alone(MatchFiles())
    for pattern in ("*.log", "**/*.log"):
        alone.work(f"memory://{tmp_path.name}/{pattern}")
    assert [file.path for file in alone.sent()] == [
        f"memory://{tmp_path.name}/{name}" for name in ("a.log", "sub/c.log")
    ]


def test_files_come_once_the_oldest_first_and_the_next_look_is_put_off(tree):
    alone = Alone(MatchFiles())
    assert alone.work(f"{tree}/**/[abc].log") is None
    assert alone.deferred == Deferred(OffsetRange(1, OFFSET_INFINITY), NEXT_LAUNCH)
    files = alone.sent()
    assert [Path(file.path).name for file in files] == ["a.log", "b.log", "a.log", "c.log"]
    assert files[1] == FileInfo(str(tree / "b.log"), 6, 1000, 1, identity_of(tree / "b.log"), is_found_again=True)
    alone.work(f"{tree}/[ab]*.log")
    assert alone.sent() == []
    alone = Alone(MatchFiles(continuously=True, interval_millis=700))
    alone.work(str(tree))
    assert alone.deferred == Deferred(OffsetRange(1, OFFSET_INFINITY), timedelta(seconds=0.7))


@pytest.mark.parametrize("continuously", [False, True])
def test_a_further_look_that_finds_nothing_was_in_vain_and_no_look_is_a_byte_that_was_read(
    continuously, tree, tmp_path
):
    finders = {"patterns": Items([f"{tree}/?.log"]), "match": MatchFiles(continuously=continuously)}
    draw = chain(**finders, read=ReadFiles(), collect=Collect())
    told: list[RunEvent] = []
    desk = Desk(tmp_path / "home", draw, until=Until.IDLE, clock=FakeClock())
    loop = desk.run(windows=9, observers=[told.append])
    assert (arrived(loop), loop.checkpoint.window < 3) == (["a.log", "b.log"], True)
    read = {"match": 0, "read": 0}
    for measured in (each for each in told if isinstance(each, Measured)):
        for name in read:
            read[name] += sum(partition.positions for partition in measured.operators.get(name, ()))
    assert read == {"match": 0, "read": len("a.log\nb.log\n")}
    assert sum(each.positions for each in told if isinstance(each, Committed)) == read["read"]


@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE])
def test_each_launch_scans_a_pattern_once_and_finds_what_is_new_and_what_has_grown(until, tree, tmp_path):
    files = Map(lambda file: f"{Path(file.path).name} {file.length}")
    draw = chain(patterns=Items([f"{tree}/?.log"]), match=MatchFiles(), files=files, collect=Collect())

    def launched() -> list[str]:
        return arrived(Desk(tmp_path / "home", draw, until=until, clock=FakeClock()).run(windows=9))

    assert [launched(), launched()] == [["a.log 6", "b.log 6"], ["a.log 6", "b.log 6"]]
    (tree / "e.log").write_text("e\n")
    with (tree / "a.log").open("a") as grown:
        grown.write("more\n")
    assert sorted(launched()) == ["a.log 11", "a.log 6", "b.log 6", "e.log 2"]


NAMES = {"match": MatchFiles(), "names": Map(lambda file: Path(file.path).name), "collect": Collect()}


def test_a_pattern_that_is_taken_out_of_its_list_is_not_scanned_until_it_is_put_back(tree, tmp_path):
    def desk(*names: str) -> Desk:
        patterns = Items([f"{tree}/{name}" for name in names])
        return Desk(tmp_path / "home", chain(patterns=patterns, **NAMES), clock=FakeClock())

    def listed_by(at: Desk) -> dict[str, str]:
        files = listed(compile_application(at.draw), at.ledger())
        return {Path(file.path).name: file.state for file in files if file.state != "ignored"}

    assert arrived(desk("sub/*.log", "?.log").run()) == ["a.log", "a.log", "b.log"]
    write(tree / "e.log", "e\n", 9)
    write(tree / "sub/f.log", "f\n", 9)
    assert arrived(desk("sub/*.log").run())[3:] == ["f.log"]
    assert listed_by(desk("sub/*.log")) == {"a.log": "read", "f.log": "read"}
    assert arrived(desk("?.log", "sub/*.log").run())[4:] == ["e.log"]


def test_a_pattern_that_a_list_did_not_send_is_scanned_until_it_is_given_up(tree, tmp_path):
    draw = chain(wanted=Items(["?"]), paths=Map(f"{tree}/{{}}.log".format), **NAMES)
    desk = Desk(tmp_path / "home", draw, clock=FakeClock())
    assert arrived(desk.run()) == ["a.log", "b.log"]
    write(tree / "e.log", "e\n", 9)
    assert arrived(desk.run())[2:] == ["e.log"]
    ask(desk.ledger().store, GiveUp(names=(f"{tree}/?.log",), by="a user"), datetime.now(UTC))
    write(tree / "f.log", "f\n", 9)
    assert arrived(desk.run())[3:] == []


def test_an_empty_file_is_passed_over_until_it_holds_something(tree):
    found = Matching(f"{tree}/e*.log")
    (tree / "e.log").touch()
    assert found.look() == []
    (tree / "e.log").write_text("e\n")
    assert found.look() == ["e.log"]


def test_a_file_that_has_the_number_and_the_header_of_one_that_is_gone_is_another(tree):
    """As if it had been given both: a number that is free is soon given away."""
    header = "h" * EDGE
    found = Matching(f"{tree}/*.csv")
    (tree / "monday.csv").write_text(f"{header}\nmonday\n")
    assert found.look() == ["monday.csv"]
    for name, content in [("tuesday.csv", "tuesday\ntuesday\n"), ("wednesday.csv", "wed\n")]:
        next(tree.glob("*.csv")).rename(tree / name).write_text(f"{header}\n{content}")
        assert [found.look(), found.look()] == [[name], []]


def test_a_file_is_known_by_how_far_it_had_come_at_the_last_look(tree):
    found = Matching(f"{tree}/*.csv", grown="skip")
    (tree / "log.csv").write_text("header\n")
    assert found.look() == ["log.csv"]
    (tree / "log.csv").write_text("header\n1\n2\n")
    assert found.look() == []
    (tree / "log.csv").rename(tree / "next.csv").write_text("header\n3\n4\n5\n")
    assert found.look() == ["next.csv"]


def test_a_file_that_grows_while_it_has_two_names_comes_once(tree):
    (tree / "again.log").hardlink_to(tree / "a.log")
    found = Matching(f"{tree}/a*.log")
    assert found.look() == ["a.log"]
    with (tree / "a.log").open("a") as grown:
        grown.write("more\n")
    assert [found.look(), found.look()] == [["a.log"], []]
    (tree / "again.log").unlink()
    assert found.look() == []


def as_if_elsewhere(identity: str) -> str:
    """That of a file with the same number on another device, as a device may have when the machine starts again."""
    number, rest = identity.split("-", 1)
    return f"ffff.{number.partition('.')[2]}-{rest}"


def as_before_devices(identity: str) -> str:
    """As ledgers have it that were written when an identity had neither device nor name."""
    number, length, digest, _ = identity.split("-")
    return f"{number.partition('.')[2]}-{length}-{digest}"


@pytest.mark.parametrize(
    ("known", "name", "found"),
    [
        (str, "a.txt", []),
        (as_if_elsewhere, "a.txt", ["a.txt"]),  # two devices may give one number to files that begin alike
        (as_if_elsewhere, "a.log", []),
        (as_before_devices, "a.log", []),
        (as_before_devices, "a.txt", []),
    ],
)
def test_a_file_is_known_by_its_device_or_its_name_and_older_ledgers_have_neither(known, name, found, tree):
    identity = identity_of(tree / "a.log")
    (tree / "a.log").replace(tree / name)
    assert Matching(f"{tree}/a.*", known=[known(identity)]).look() == found


CHECK = "\n  help: check the pattern; relative paths begin in the folder from which you launch"


def test_a_name_that_is_not_there_is_an_error_once_and_a_warning_where_it_may_come(tree, caplog):
    with pytest.raises(InputUnreadable, match=f"^cannot read {tree}/nowhere: there is no such file or directory"):
        Alone(MatchFiles()).work(f"{tree}/nowhere")
    Alone(MatchFiles()).work(f"{tree}/nowhere*")
    found = Matching(f"{tree}/nowhere")
    assert [found.look(), found.look()] == [[], []]
    assert caplog.messages == [
        f"no file matches {tree}/nowhere*{CHECK}",
        f"there is no file or directory {tree}/nowhere; each scan looks for it again",
    ]
    (tree / "nowhere").write_text("now\n")
    assert found.look() == ["nowhere"]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("*.csv", f"no file matches {{}}/*.csv{CHECK}"),
        ("nowhere/**", f"no file matches {{}}/nowhere/**{CHECK}"),
        ("empty", "there is no file in {}/empty"),
    ],
)
def test_a_pattern_that_never_matched_is_reported_once(pattern, words, tree, caplog):
    (tree / "empty").mkdir()
    never, found = Matching(f"{tree}/{pattern}"), Matching(f"{tree}/*.txt")
    assert [never.look(), never.look(), found.look()] == [[], [], ["b.txt"]]
    (tree / "b.txt").unlink()
    assert found.look() == []  # its files were read and deleted
    assert caplog.messages == [words.format(tree)]


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("is_launched_again", [False, True])
def test_known_files_are_stored_once_and_later_ones_are_added(is_launched_again, tmp_path):
    """`DAGKIT_KNOWN_FILES=100000` tests with that many files."""
    count = int(os.environ.get("DAGKIT_KNOWN_FILES", "2000"))
    bucket = fsspec.filesystem("memory")

    def add(first: int, files: int) -> None:
        for number in range(first, first + files):
            bucket.pipe(f"/known/{number:06}.txt", b"x")

    def found(event: RunEvent) -> None:
        if isinstance(event, Committed) and not is_launched_again:
            add(count + 10 * (event.window_id - 1), 10)

    try:
        add(0, count)
        match = MatchFiles(continuously=True, interval_millis=0)
        draw = chain(patterns=Items(["memory://known/*.txt"]), match=match)
        desk = Desk(tmp_path, draw, Until.STOPPED, clock=FakeClock())
        for launch in range(3 if is_launched_again else 1):
            if launch:
                add(count + 10 * (launch - 1), 10)
            desk.run(windows=1 if is_launched_again else 3, observers=[found])
        known = desk.loop().state["match"][0]["known"]
    finally:
        bucket.rm("/known", recursive=True)
    assert known == {"memory://known/*.txt": [f"memory://known/{number:06}.txt @1.0" for number in range(count + 20)]}
    ledger = desk.ledger()
    events = [record.block.event for name in ledger.names() for record in ledger.chain(name).records()]
    stored = [event.new_checkpoint for event in events if isinstance(event, ExecuteTransform)]
    first, *later = [checkpoint.size for checkpoint in stored if checkpoint is not None]
    assert (first > 20 * count, len(later)) == (True, 2)
    assert max(later) <= 20_000


def test_known_files_are_left_out_of_a_listing_until_they_change(tmp_path):
    same, grown, touched, new = (tmp_path / name for name in ("same", "grown", "touched", "new"))
    recorded = []
    for path in (same, grown, touched):
        path.write_text(f"{path.name}\n")
        status = path.stat()
        recorded.append(f"{identity_of(path)}@{status.st_mtime_ns:x}.{status.st_ctime_ns:x}")
    unchanged = Identities(recorded)
    assert list(files_like(f"{tmp_path}/*", is_known=unchanged.is_unchanged)) == []
    assert sorted(unchanged.unchanged) == sorted(recorded)
    with grown.open("a") as file:
        file.write("more\n")
    os.utime(touched, (1_700_000_000, 1_700_000_000))
    new.write_text("new\n")
    later = Identities(recorded)
    listed = {Path(found.path) for found in files_like(f"{tmp_path}/*", is_known=later.is_unchanged)}
    assert listed == {grown, touched, new}
    assert later.gone(recorded) == set(recorded[1:])
