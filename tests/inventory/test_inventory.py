"""Which files a query of Structured Streaming has read, from its checkpoint alone; and a set that remembers hashes."""

from array import array
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from dagkit.errors import RunFailure
from dagkit.runs.inventory.adoption import MAX_FILE_AGE_MILLIS, Adoption, Doubt
from dagkit.runs.inventory.listing import RECENT, Hashes
from dagkit.runs.inventory.readings import readings
from dagkit.runs.inventory.spark_checkpoint import ReadFiles, files_read, identity
from dagkit.testing import FakeClock
from tests.engine.cast import Collect, Desk, Digits, Ranges
from tests.inventory.checkpoints import OFFSETS, Checkpoint


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "in" / name for name in ("a.txt", "b é+#?%.txt", "c d.txt", "d.txt")]
    paths[0].parent.mkdir()
    for path in paths:
        path.write_text(f"{path.name}\n")
    return paths


@pytest.fixture
def checkpoint(tmp_path):
    return Checkpoint(tmp_path / "checkpoint")


def read(checkpoint: Checkpoint, source: int | None = None, *, in_flight_is_read: bool = False) -> ReadFiles:
    return files_read(str(checkpoint.folder), source, in_flight_is_read=in_flight_is_read)


def names(found: ReadFiles) -> set[str]:
    return {Path(path).name for path in found.files}


def test_the_files_of_ended_micro_batches_are_read(checkpoint, files):
    found = read(checkpoint.read(files[:2], files[2:]))
    assert found.files == {str(path): path.stat().st_mtime_ns // 1_000_000 for path in files}
    assert (found.query, found.source, found.batch, found.in_flight) == ("the-query", 0, 1, None)


def test_the_last_micro_batch_is_in_flight_until_it_has_ended(checkpoint, files):
    checkpoint.read(files[:2], files[2:])
    (checkpoint.folder / "commits/1").unlink()
    found = read(checkpoint)
    assert (names(found), found.in_flight) == ({"a.txt", files[1].name}, 1)
    assert found.unfinished == {str(path) for path in files[2:]}
    counted = read(checkpoint, in_flight_is_read=True)
    assert (len(counted.files), counted.unfinished, counted.batch) == (4, frozenset(), 1)


def test_files_that_were_listed_and_not_planned_are_not_read(checkpoint, files):
    checkpoint.read(files[:2])
    checkpoint.log(1, *(checkpoint.entry(path, 1) for path in files[2:]))
    found = read(checkpoint)
    assert (len(found.files), found.unfinished) == (2, frozenset())


def test_the_first_micro_batch_may_be_in_flight(checkpoint, files):
    checkpoint.read(files)
    (checkpoint.folder / "commits/0").unlink()
    found = read(checkpoint)
    assert (dict(found.files), len(found.unfinished), found.batch) == ({}, 4, -1)


def test_a_compact_log_holds_what_came_before_it(checkpoint, files):
    entries = [checkpoint.entry(path, number) for number, path in enumerate(files)]
    checkpoint.log(0, "not read")
    checkpoint.log(2, *entries[:3], compact=True)
    checkpoint.log(3, entries[3])
    checkpoint.plan(7, 3)
    checkpoint.end(7)
    assert names(read(checkpoint)) == {path.name for path in files}


def test_a_compact_log_after_the_last_micro_batch_counts_up_to_it(checkpoint, files):
    checkpoint.read(files[:1], files[1:2])
    checkpoint.log(2, *(checkpoint.entry(path, n) for n, path in enumerate(files[:3])), compact=True)
    assert names(read(checkpoint)) == {path.name for path in files[:2]}


@pytest.mark.parametrize("scheme", ["file:", "file://", "file://localhost", ""])
def test_every_form_of_a_local_path_is_one_file(checkpoint, files, scheme):
    checkpoint.scheme = scheme
    assert set(read(checkpoint.read(files)).files) == {identity(str(path)) for path in files}


def test_links_to_folders_and_names_of_stores_do_not_matter(tmp_path, files):
    (tmp_path / "link").symlink_to(tmp_path / "in")
    assert identity(str(tmp_path / "link/a.txt")) == identity(str(files[0])) == str(files[0])
    (tmp_path / "in/other.txt").symlink_to(files[0])
    assert identity(str(tmp_path / "in/other.txt")) != identity(str(files[0]))  # it is read, too


def test_a_file_of_s3_is_recognised_under_the_schemes_of_hadoop(checkpoint):
    line = '{"path":"s3a://shop/a%20b/ü.txt","timestamp":7,"batchId":0}'
    checkpoint.log(0, line)
    checkpoint.plan(0, 0)
    checkpoint.end(0)
    assert dict(read(checkpoint).files) == {identity("s3://shop/a%20b/ü.txt?region=eu-west-1"): 7}


def test_one_of_several_sources_is_chosen(checkpoint, files):
    (checkpoint.folder / "sources/2").mkdir()
    checkpoint.log(0, checkpoint.entry(files[0], 0))
    checkpoint.write("sources/2/0", "v1", checkpoint.entry(files[1], 0))
    checkpoint.plan(0, 0, '{"topic":{"0":5}}', '{"logOffset":0}', "-")
    checkpoint.end(0)
    assert names(read(checkpoint, 2)) == {files[1].name}
    with pytest.raises(RunFailure, match="has 2 file sources, and one must be chosen") as refused:
        read(checkpoint)
    assert refused.value.help == "choose one with --source; file sources: 0, 2"
    for other in (1, 3, 4):
        with pytest.raises(RunFailure, match=f"source {other} of .* is no file source"):
            read(checkpoint, other)


def test_the_hash_names_the_list_of_files(checkpoint, files):
    first = read(checkpoint.read(files[:2])).digest
    assert read(checkpoint).digest == first
    assert read(checkpoint.read(files[:2], files[2:])).digest != first


BROKEN: dict[str, tuple[Callable[[Checkpoint], object], str]] = {
    "no folder": (lambda it: it.folder.rename(it.folder.with_name("moved")), "metadata cannot be read"),
    "nothing planned": (lambda it: [path.unlink() for path in it.folder.glob("offsets/*")], "it has no offsets"),
    "an unknown version of offsets": (lambda it: it.write("offsets/1", "v3", OFFSETS, "-"), "its version is 'v3'"),
    "an unknown version of the log": (lambda it: it.write("sources/0/1", "v2"), "sources/0/1 cannot.*version is 'v2'"),
    "a log that is missing": (lambda it: (it.folder / "sources/0/0").unlink(), "sources/0 has no file 0"),
    "a line that is cut off": (lambda it: it.log(1, '{"path":"file:///x"'), 'names no file: \'{"path"'),
    "a line without a time": (lambda it: it.log(1, '{"path":"file:///x","batchId":1}'), "names no file"),
    "another source": (lambda it: it.write("offsets/1", "v1", OFFSETS, '{"t":{"0":1}}'), "has 0 file sources"),
    "offsets that were removed": (lambda it: (it.folder / "offsets/1").unlink(), "offsets/1 cannot be read"),
}


@pytest.mark.parametrize(("break_it", "problem"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_checkpoint_is_refused(checkpoint, files, break_it, problem):
    break_it(checkpoint.read(files[:2], files[2:]))
    with pytest.raises(RunFailure, match=problem) as refused:
        read(checkpoint)
    assert refused.value.help


class Walked(dict):
    """Counts how often all of its values are read."""

    walks = 0

    def values(self):
        self.walks += 1
        return super().values()


def test_the_files_of_spark_are_not_walked_for_each_new_file():
    known = Walked({"/in/a.txt": MAX_FILE_AGE_MILLIS + 2, "/in/b.txt": 1})
    adoption = Adoption("finder", ReadFiles("", "", 0, 0, None, known, frozenset()), Doubt())
    for number in range(3):
        adoption.sort(f"/in/{number}.txt", number)
    assert (sorted(adoption.old), known.walks) == (["/in/0.txt", "/in/1.txt"], 1)


class Deferring(Digits):
    """Leaves all but the first position of a block to a later time."""

    def process(self, element, tracker):
        if tracker.try_claim(element.start):
            yield element.start
            tracker.defer_remainder(timedelta(hours=1))


@pytest.mark.parametrize("last", ["first", "second"])
def test_what_waits_of_a_file_is_the_sum_of_what_its_readers_left(tmp_path, last):
    def draw(dag, conf):
        ranges = dag.add_operator("ranges", Ranges(looks=((10,),)))
        for name in ("first", "second"):
            reader = dag.add_operator(name, (Digits if name == last else Deferring)())
            ranges >> reader >> dag.add_operator(f"{name}-numbers", Collect())

    desk = Desk(tmp_path, draw, clock=FakeClock())
    desk.run(windows=1)
    (reading,) = readings(desk.ledger(), "numbers")
    assert (reading.pending, len(reading.windows)) == (9, 2)


def test_it_answers_as_a_set_does():
    known, values = Hashes(), [f"file {number}" for number in range(RECENT + 10)]
    assert all(map(known.add, values))
    assert not any(map(known.add, values[:: RECENT // 7]))
    assert (len(known), "file" in known) == (len(values), False)
    assert all(value in known for value in values[:: RECENT // 7])


def test_most_of_it_takes_eight_bytes_for_each_value():
    known = Hashes()
    for number in range(2 * RECENT):
        known.add(number)
    assert (known._sorted, known._recent) == (array("q", range(2 * RECENT)), set())
