"""The names of sources in a ledger name files."""

import pytest

from dagkit.engine.record.source_names import is_named

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
