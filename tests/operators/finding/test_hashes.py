"""The hash of a file is taken only of a state that no later change can be mistaken for."""

import hashlib
import os
from pathlib import Path

import pytest

from dagkit_operators.filesystem.access import Found, looked_up
from dagkit_operators.finding.contents import StillChanging, settled_hash

LATER = 10**13


def found(path: Path) -> Found:
    status = looked_up(str(path))
    assert status is not None
    return status


def test_the_first_bytes_of_a_settled_file_are_hashed(tmp_path):
    (tmp_path / "file").write_bytes(b"abcdef")
    assert settled_hash(found(tmp_path / "file"), 4, LATER) == hashlib.sha256(b"abcd").hexdigest()


def test_a_file_that_was_changed_since_it_was_found_is_not_hashed(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"abcdef")
    os.utime(file, (1000, 1000))
    before = found(file)
    file.write_bytes(b"ABCDEF")
    with pytest.raises(StillChanging, match="file"):
        settled_hash(before, 6, LATER)
    file.unlink()
    with pytest.raises(StillChanging, match="file"):
        settled_hash(before, 6, LATER)


def test_a_file_whose_next_change_may_have_the_same_time_is_not_hashed(tmp_path):
    (tmp_path / "file").write_bytes(b"abcdef")
    os.utime(tmp_path / "file", (1000, 1000))
    with pytest.raises(StillChanging, match="file"):
        settled_hash(found(tmp_path / "file"), 6, 1_000_000)
