"""A piece of an earlier window is read from the file that was made of it, byte for byte."""

import gzip

import fsspec
import pytest

from dagkit.engine.files.staging import Part
from dagkit.engine.history.piece_places import place_of

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
