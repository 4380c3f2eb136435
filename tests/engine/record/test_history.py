"""What a ledger records of past windows, of the files that they read and of the pieces that they wrote."""

import gzip
from datetime import UTC, datetime

import fsspec
import pytest

from dagkit.engine.files.staging import Part
from dagkit.engine.program.facts import Scaled, Split
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.history import history, is_named
from dagkit.engine.record.written_file import place_of
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from tests.engine.cast import lines_through_filter


def test_facts_come_back_as_they_were_kept():
    split = Split(into="reader.blocks", source="a.txt", start=0, at=4, end=None, block=1, why="the window was over")
    counts = {"before": 1, "after": 4, "policy": "drain", "rule": "as many as the backlog needs"}
    scaled = Scaled(operator="reader", at=datetime(2030, 1, 1, tzinfo=UTC), **counts, inputs={"blocks": 12})
    assert Checkpoint.model_validate(Checkpoint(facts=(split, scaled)).as_json()).facts == (split, scaled)


def test_every_window_is_reported_in_order(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("one\ntwo\nthree\n" * 20)
    draw = lines_through_filter(tmp_path, block_size=60)
    done = launch(draw, until="once", path=tmp_path / "app", machine=Machine("reference"))
    told = list(history(Ledger.open(tmp_path / "app")))
    assert [entry.checkpoint.window for entry in told] == list(range(1, done.window_id + 1))
    assert [entry.committed for entry in told] == sorted(entry.committed for entry in told)


REMOTE = "s3://shop/in/a.txt"


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("/in/a.txt", "/in/a.txt"),
        ("/in/a.txt@7", "/in/a.txt"),
        ("/in/a.txt@12.ab-3-0123456789abcdef", "/in/a.txt"),
        ("Find: /in/a.txt@7", "/in/a.txt"),
        (REMOTE, REMOTE),
        (f"{REMOTE}@{REMOTE}", REMOTE),
        (f'{REMOTE}@{REMOTE} version="0/1"', REMOTE),
        (f"Match: {REMOTE}@{REMOTE} version=2", REMOTE),
    ],
)
def test_a_source_is_named_by_the_path_of_its_file(source, path):
    assert is_named(source, path)


@pytest.mark.parametrize("source", ["/in/a.txt@b/c.txt", "/in/a.txts", "/in", "Find: /in/b.txt", f"{REMOTE}@b/c.txt@7"])
def test_a_source_is_not_named_by_the_path_of_another_file(source):
    assert not is_named(source, "/in/a.txt")
    assert not is_named(source, REMOTE)


CONTENTS = [gzip.compress(text, mtime=0) for text in (b"one", b"two", b"three")]


@pytest.mark.parametrize("in_store", [False, True], ids=["on a disk", "in a store"])
def test_the_pieces_of_a_compressed_file_are_those_that_were_written(tmp_path, in_store):
    file = "memory://piece_places/a.gz" if in_store else str(tmp_path / "a.gz")
    with fsspec.open(file, "wb") as written:
        written.write(b"".join(CONTENTS))
    pieces = [
        Part(operator="w", file=file, part=f"staging/{window}/a/0/0.part", length=len(content), window=window)
        for window, content in enumerate(CONTENTS, 1)
    ]
    places = [place_of(piece, {file: pieces}, str(tmp_path / "app")) for piece in pieces]
    assert [place.content() for place in places if place is not None] == CONTENTS


def test_the_fields_of_groups_stand_among_the_others_in_a_checkpoint():
    assert " ".join(Checkpoint().model_dump(mode="json")) == (
        "format window launched began reported work queue search aside state held files finished receipts receipted "
        "read event_times watermarks drained ended facts rows partitions altered answered"
    )
