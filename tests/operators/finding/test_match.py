"""A pattern becomes the files that it means; each file comes once, for as long as it is the same file."""

import logging
import os
import re
import shutil
from datetime import timedelta
from pathlib import Path

import fsspec
import pytest
from fsspec.utils import glob_translate
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Context, Dag
from dagkit.api.running import Until
from dagkit.engine.reports.run_events import Committed, Measured, RunEvent
from dagkit.engine.worker.instances import live
from dagkit.errors import InputUnreadable
from dagkit.ledger import ExecuteTransform
from dagkit.ranges import OFFSET_INFINITY, Deferred, OffsetRange
from dagkit.testing import Alone, FakeClock
from dagkit_operators import FileInfo, Items, Map, MatchFiles, ReadFiles
from dagkit_operators.filesystem.access import Found
from dagkit_operators.filesystem.identities import EDGE, Identities, has_identity
from dagkit_operators.filesystem.path_patterns import files_like, matching
from tests.engine.cast import Collect, Desk, arrived


def identity_of(path: str) -> str | None:
    """The identity of a file at its first look."""
    return Identities(()).identify(Found(path, 0, 0)).identity


@pytest.fixture
def tree(tmp_path):
    for number, name in enumerate(
        ("a.log", "b.log", "b.txt", "sub/a.log", "sub/deep/c.log", ".hidden.log", "d.log.tmp")
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
        os.utime(path, (number, number))
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("a.log", ["a.log"]),
        (".hidden.log", [".hidden.log"]),
        ("", ["a.log", "b.log", "b.txt", "sub/a.log", "sub/deep/c.log"]),
        ("sub", ["sub/a.log", "sub/deep/c.log"]),
        ("*.log", ["a.log", "b.log"]),
        ("?.txt", ["b.txt"]),
        ("[ac].log", ["a.log"]),
        ("*/*.log", ["sub/a.log"]),
        ("**/*.log", ["a.log", "b.log", "sub/a.log", "sub/deep/c.log"]),
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


def test_a_pattern_of_many_stars_ends(tmp_path):
    (tmp_path / ("a" * 200)).touch()
    assert list(files_like(f"{tmp_path}/{'a*' * 30}b")) == []


def test_a_relative_pattern_is_taken_from_where_the_launch_was_started_and_not_from_where_a_worker_is(tree):
    match = live(MatchFiles(), {})
    assert isinstance(match, MatchFiles), "what lives is of the same class"
    match.setup(Context("application", "match", home=str(tree)))
    found = match.process("sub/*.log", match.tracker("sub/*.log", OffsetRange(0, 1)))
    assert [file.path for file in found] == [f"{tree}/sub/a.log"]


def test_a_file_whose_name_looks_like_a_pattern_is_meant_by_its_name(tmp_path):
    (tmp_path / "[ab].log").write_text("x")
    (tmp_path / "a.log").write_text("x")
    assert [found.path for found in files_like(f"{tmp_path}/[ab].log")] == [f"{tmp_path}/[ab].log"]


def test_patterns_of_urls_mean_files(tmp_path):
    files = fsspec.filesystem("memory")
    for name in ("a.log", "b.txt", "sub/c.log"):
        files.pipe(f"/{tmp_path.name}/{name}", b"x\n")
    found = [found.path for found in files_like(f"memory://{tmp_path.name}/**/*.log")]
    assert sorted(path.rpartition("/")[2] for path in found) == ["a.log", "c.log"]
    alone = Alone(MatchFiles())
    alone.work(f"memory://{tmp_path.name}/*.log")
    alone.work(f"memory://{tmp_path.name}/**/*.log")
    assert [file.path.rpartition("/")[2] for file in alone.sent()] == ["a.log", "c.log"]


def names(alone: Alone[MatchFiles]) -> list[str]:
    return [Path(file.path).name for file in alone.sent()]


class Looking:
    """A pattern that is looked at continuously."""

    def __init__(self, pattern: str, **settings: object) -> None:
        self.pattern = pattern
        self.alone = Alone(MatchFiles(continuously=True, **settings))

    def look(self) -> list[str]:
        self.alone.work(self.pattern, self.alone.deferred and self.alone.deferred.residual)
        found = names(self.alone)
        deferred = self.alone.deferred
        self.alone = self.alone.restarted()
        self.alone.deferred = deferred
        return found


def test_files_come_once_the_oldest_first(tree):
    alone = Alone(MatchFiles())
    assert alone.work(f"{tree}/**/*.log") is None
    assert alone.deferred is None
    files = alone.sent()
    assert [Path(file.path).name for file in files] == ["a.log", "b.log", "a.log", "c.log"]
    assert files[1] == FileInfo(str(tree / "b.log"), 6, 1000, 1, identity_of(str(tree / "b.log")) or "")
    alone.work(f"{tree}/*.log")
    assert alone.sent() == []


def test_a_look_is_put_off_until_the_next_one(tree):
    alone = Alone(MatchFiles(continuously=True, interval_millis=700))
    alone.work(str(tree))
    assert alone.deferred == Deferred(OffsetRange(1, OFFSET_INFINITY), timedelta(seconds=0.7))


def test_a_further_look_that_finds_nothing_was_in_vain_and_a_run_until_idle_ends(tree, tmp_path):
    def draw(dag: Dag, conf: object) -> None:
        patterns = dag.add_operator("patterns", Items(items=(f"{tree}/*.log",)))
        match = dag.add_operator("match", MatchFiles(continuously=True))
        patterns >> match
        match >> dag.add_operator("path", Map(lambda file: file.path)) >> dag.add_operator("collect", Collect())

    desk = Desk(tmp_path, draw, until=Until.IDLE, clock=FakeClock())
    loop = desk.run(windows=9)
    assert arrived(loop) == [str(tree / "a.log"), str(tree / "b.log")]
    assert loop.checkpoint.window < 3


@pytest.mark.parametrize("continuously", [False, True])
def test_a_look_is_no_byte_that_was_read(tree, tmp_path, continuously):
    def draw(dag: Dag, conf: object) -> None:
        patterns = dag.add_operator("patterns", Items(items=(f"{tree}/*.log",)))
        match = patterns >> dag.add_operator("match", MatchFiles(continuously=continuously))
        match >> dag.add_operator("read", ReadFiles()) >> dag.add_operator("collect", Collect())

    told: list[RunEvent] = []
    Desk(tmp_path / "home", draw, until=Until.IDLE, clock=FakeClock()).run(windows=9, observers=[told.append])
    read = {"match": 0, "read": 0}
    for measured in (each for each in told if isinstance(each, Measured)):
        for name in read:
            read[name] += sum(partition.positions for partition in measured.operators.get(name, ()))
    assert read == {"match": 0, "read": len("a.log\nb.log\n")}
    assert sum(each.positions for each in told if isinstance(each, Committed)) == read["read"]


def test_a_pattern_that_was_looked_at_once_is_done_and_one_more_element_of_it_finds_what_came(tree, tmp_path):
    given = [f"{tree}/*.log"]

    def launched(*, continuously: bool) -> list[str]:
        def draw(dag: Dag, conf: object) -> None:
            patterns = dag.add_operator("patterns", Items(items=tuple(given)))
            match = patterns >> dag.add_operator("match", MatchFiles(continuously=continuously))
            match >> dag.add_operator("path", Map(lambda file: file.path)) >> dag.add_operator("collect", Collect())

        loop = Desk(tmp_path / "home", draw, until=Until.IDLE, clock=FakeClock()).run(windows=9)
        return [Path(path).name for path in arrived(loop)]

    assert launched(continuously=False) == ["a.log", "b.log"]
    (tree / "e.log").write_text("e\n")
    assert launched(continuously=True) == ["a.log", "b.log"]
    given.append(given[0])
    assert launched(continuously=True) == ["a.log", "b.log", "e.log"]


def test_what_comes_later_is_found_later(tree):
    looking = Looking(f"{tree}/*.log")
    assert looking.look() == ["a.log", "b.log"]
    assert looking.look() == []
    (tree / "c.log").write_text("c\n")
    with (tree / "a.log").open("a") as grown:
        grown.write("more\n")
    assert looking.look() == ["a.log", "c.log"]
    assert looking.look() == []


def test_an_empty_file_is_passed_over_until_it_holds_something(tree):
    looking = Looking(f"{tree}/e*.log")
    (tree / "e.log").touch()
    assert looking.look() == []
    (tree / "e.log").write_text("e\n")
    assert looking.look() == ["e.log"]


def test_a_file_that_was_renamed_is_the_same_and_what_takes_its_place_is_another(tree):
    looking = Looking(f"{tree}/a.log*")
    assert looking.look() == ["a.log"]
    (tree / "a.log").rename(tree / "a.log.1")
    (tree / "a.log").write_text("new\n")
    assert looking.look() == ["a.log"]
    assert looking.look() == []


def test_a_file_that_was_rewritten_in_its_place_is_another(tree):
    looking = Looking(f"{tree}/a.log")
    assert looking.look() == ["a.log"]
    (tree / "a.log").write_text("other\n")
    assert looking.look() == ["a.log"]


def test_a_file_that_has_the_number_and_the_header_of_one_that_is_gone_is_another(tree):
    """As if it had been given both: a number that is free is soon given away."""
    header = "h" * EDGE
    looking = Looking(f"{tree}/*.csv")
    (tree / "monday.csv").write_text(f"{header}\nmonday\n")
    assert looking.look() == ["monday.csv"]
    for name, content in [("tuesday.csv", "tuesday\ntuesday\n"), ("wednesday.csv", "wed\n")]:
        next(tree.glob("*.csv")).rename(tree / name).write_text(f"{header}\n{content}")
        assert looking.look() == [name]
    assert looking.look() == []


def test_a_file_is_known_by_how_far_it_had_come_at_the_last_look(tree):
    looking = Looking(f"{tree}/*.csv", grown="skip")
    (tree / "log.csv").write_text("header\n")
    assert looking.look() == ["log.csv"]
    (tree / "log.csv").write_text("header\n1\n2\n")
    assert looking.look() == []
    (tree / "log.csv").rename(tree / "next.csv").write_text("header\n3\n4\n5\n")
    assert looking.look() == ["next.csv"]


def test_a_file_that_grows_while_it_has_two_names_comes_once(tree):
    (tree / "again.log").hardlink_to(tree / "a.log")
    looking = Looking(f"{tree}/a*.log")
    assert looking.look() == ["a.log"]
    with (tree / "a.log").open("a") as grown:
        grown.write("more\n")
    assert looking.look() == ["a.log"]
    assert looking.look() == []
    (tree / "again.log").unlink()
    assert looking.look() == []


def test_files_that_were_away_for_a_while_are_known(tree):
    looking = Looking(f"{tree}/*.log")
    assert looking.look() == ["a.log", "b.log"]
    (tree / "a.log").rename(tree / "elsewhere")
    assert looking.look() == []
    (tree / "elsewhere").rename(tree / "a.log")
    assert looking.look() == []


def as_if_elsewhere(identity: str) -> str:
    """That of a file with the same number on another device."""
    number, rest = identity.split("-", 1)
    return f"ffff.{number.partition('.')[2]}-{rest}"


def as_before_devices(identity: str) -> str:
    """As ledgers have it that were written when an identity had neither device nor name."""
    number, length, digest, _ = identity.split("-")
    return f"{number.partition('.')[2]}-{length}-{digest}"


def known_as(identity: str, pattern: str) -> Alone[MatchFiles]:
    return Alone(MatchFiles(), state={"known": {pattern: [identity]}})


def test_two_devices_may_give_one_number_to_files_that_begin_alike(tree):
    identity, pattern = identity_of(str(tree / "a.log")), f"{tree}/*.txt"
    assert identity is not None
    (tree / "a.log").rename(tree / "a.txt")
    for known, new in [(identity, ["b.txt"]), (as_if_elsewhere(identity), ["a.txt", "b.txt"])]:
        alone = known_as(known, pattern)
        alone.work(pattern)
        assert names(alone) == new


def test_a_device_may_have_another_number_when_the_machine_starts_again(tree):
    identity, pattern = identity_of(str(tree / "a.log")), f"{tree}/a.log"
    assert identity is not None
    alone = known_as(as_if_elsewhere(identity), pattern)
    alone.work(pattern)
    assert names(alone) == []


def test_what_an_older_ledger_knows_is_known_by_whatever_name(tree):
    identity, pattern = identity_of(str(tree / "a.log")), f"{tree}/a.*"
    assert identity is not None
    for name in ("a.log", "a.txt"):
        (tree / "a.log").replace(tree / name)
        alone = known_as(as_before_devices(identity), pattern)
        alone.work(pattern)
        assert names(alone) == []


CHECK = "\n  help: check the pattern; relative paths begin in the folder from which you launch"


def test_a_name_that_is_not_there_is_an_error_once_and_a_warning_where_it_may_come(tree, caplog):
    problem = f"^cannot read {tree}/nowhere: there is no such file or directory"
    with pytest.raises(InputUnreadable, match=rf"{problem} .*\n  help: make it, or give another pattern$"):
        Alone(MatchFiles()).work(f"{tree}/nowhere")
    Alone(MatchFiles()).work(f"{tree}/nowhere*")
    looking = Looking(f"{tree}/nowhere")
    with caplog.at_level(logging.WARNING):
        assert [looking.look(), looking.look()] == [[], []]
    assert [record.getMessage() for record in caplog.records] == [
        f"no file matches {tree}/nowhere*{CHECK}",
        f"there is no file or directory {tree}/nowhere; each scan looks for it again",
    ]
    (tree / "nowhere").write_text("now\n")
    assert looking.look() == ["nowhere"]


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
    looking, found = Looking(f"{tree}/{pattern}"), Looking(f"{tree}/*.txt")
    with caplog.at_level(logging.WARNING):
        assert [looking.look(), looking.look(), found.look()] == [[], [], ["b.txt"]]
        (tree / "b.txt").unlink()
        assert found.look() == []  # its files were read and deleted
    assert [record.getMessage() for record in caplog.records] == [words.format(tree)]


def test_the_same_file_is_known_while_it_grows(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x")
    early = identity_of(str(path))
    assert early is not None
    path.write_bytes(b"x" * EDGE * 2)  # the same number, and the same beginning
    assert has_identity(str(path), early)
    path.write_bytes(b"y" * EDGE * 2)
    assert not has_identity(str(path), early)
    path.write_bytes(b"")
    assert not has_identity(str(path), early)
    shutil.copy(path, tmp_path / "copy")
    assert not has_identity(str(tmp_path / "copy"), early)
    assert not has_identity(str(tmp_path / "gone"), early)
    assert identity_of(str(tmp_path / "gone")) is None


def sizes_of_checkpoints(desk: Desk) -> list[int]:
    """The bytes that each window stored of its checkpoint."""
    ledger = desk.ledger()
    events = [record.block.event for name in ledger.names() for record in ledger.chain(name).records()]
    return [e.new_checkpoint.size for e in events if isinstance(e, ExecuteTransform) and e.new_checkpoint is not None]


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("is_launched_again", [False, True])
def test_known_files_are_stored_once_and_later_ones_are_added(is_launched_again, tmp_path):
    """`DAGKIT_KNOWN_FILES=100000` tests with that many files."""
    count = int(os.environ.get("DAGKIT_KNOWN_FILES", "5000"))
    bucket = fsspec.filesystem("memory")

    def write(first: int, files: int) -> None:
        for number in range(first, first + files):
            bucket.pipe(f"/known/{number:06}.txt", b"x")

    def draw(dag: Dag, _: object) -> None:
        match = MatchFiles(continuously=True, interval_millis=0)
        dag.add_operator("patterns", Items(items=("memory://known/*.txt",))) >> dag.add_operator("match", match)

    def found(event: RunEvent) -> None:
        if isinstance(event, Committed) and not is_launched_again:
            write(count + 10 * (event.window_id - 1), 10)

    try:
        write(0, count)
        desk = Desk(tmp_path, draw, Until.STOPPED, clock=FakeClock())
        for launch in range(3 if is_launched_again else 1):
            if launch:
                write(count + 10 * (launch - 1), 10)
            desk.run(windows=1 if is_launched_again else 3, observers=[found])
        known = desk.loop().run_state.state["match"][0]["known"]
    finally:
        bucket.rm("/known", recursive=True)
    assert known == {"memory://known/*.txt": [f"memory://known/{number:06}.txt @1.0" for number in range(count + 20)]}
    first, *later = sizes_of_checkpoints(desk)
    assert first > 20 * count
    assert len(later) == 2
    assert max(later) <= 20_000


def test_known_files_are_left_out_of_a_listing_until_they_change(tmp_path):
    same, grown, touched, new = (tmp_path / name for name in ("same", "grown", "touched", "new"))
    recorded = []
    for path in (same, grown, touched):
        path.write_text(f"{path.name}\n")
        status = path.stat()
        identity = Identities([]).identify(Found(str(path), 0, 0)).identity
        recorded.append(f"{identity}@{status.st_mtime_ns:x}.{status.st_ctime_ns:x}")
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
