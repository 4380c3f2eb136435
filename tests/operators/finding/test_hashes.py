"""The hash of a file is taken only of a state that no later change can be mistaken for."""

import hashlib
from pathlib import Path

import pytest

from dagkit_operators.filesystem.access import looked_up
from dagkit_operators.finding.contents import StillChanging, settled_hash
from tests.operators.finding.cast import write

LATER = 10**13


@pytest.fixture
def found(tmp_path):
    """A file that changed last a second after 1970."""
    return looked_up(str(write(tmp_path / "file", "abcdef")))


def test_the_first_bytes_of_a_settled_file_are_hashed(found):
    assert settled_hash(found, 4, LATER) == hashlib.sha256(b"abcd").hexdigest()


def test_a_file_that_was_changed_since_it_was_found_is_not_hashed(found):
    Path(found.path).write_bytes(b"ABCDEF")
    with pytest.raises(StillChanging, match="file"):
        settled_hash(found, 6, LATER)
    Path(found.path).unlink()
    with pytest.raises(StillChanging, match="file"):
        settled_hash(found, 6, LATER)


def test_a_file_whose_next_change_may_have_the_same_time_is_not_hashed(found):
    with pytest.raises(StillChanging, match="file"):
        settled_hash(found, 6, 1000)
