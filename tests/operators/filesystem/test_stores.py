"""Files in HDFS are read in the blocks of its DataNodes and take only free names; those in Azure have versions."""

import secrets

import pytest

from dagkit.engine.files.folders import folder_at
from dagkit.engine.files.pieces import Piece
from dagkit.ground.urls import below, plain, resolved
from dagkit_operators import LineReader
from dagkit_operators.filesystem.access import looked_up, opened
from dagkit_operators.filesystem.listing import files_below
from tests.operators.finding.cast import Splitting, stretches
from tests.operators.reading.cast import read
from tests.services.scripted import ACCOUNT, BLOCK

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(hdfs):
    return below(hdfs, secrets.token_hex(4))


def write(folder: str, name: str, content: bytes) -> str:
    with folder_at(folder).create(name) as file:
        file.write(content)
    return below(folder, name)


def test_a_file_is_read_in_its_own_blocks(folder):
    lines = [f"{number} {'x' * 1000}" for number in range(2500)]
    content = "".join(f"{line}\n" for line in lines).encode()
    write(folder, "a b.txt", content)
    _, blocks = Splitting(folder).window()
    assert stretches(blocks) == [(0, BLOCK), (BLOCK, len(content))]
    assert read(LineReader(), *blocks) == lines


def test_a_piece_replaces_an_older_file_and_nothing_else_is_left(folder):
    older, piece = write(folder, "a.txt", b"older"), write(folder, "staged", b"new")
    folder_at(folder).put_in_place([Piece(piece, 3)], older, durable=True)
    with opened(older) as file:
        assert file.read() == b"new"
    found = resolved(folder)
    assert found.filesystem.handler.fs.ls(found.path) == [f"{found.path}/a.txt"]


def test_a_name_that_is_taken_is_not_given_to_another_file(folder):
    first, second = write(folder, "1", b"one"), write(folder, "2", b"two")
    with pytest.raises(FileExistsError):
        resolved(first).filesystem.move(resolved(second).path, resolved(first).path)
    with opened(first) as file:
        assert file.read() == b"one"


@pytest.mark.gate(1)
@pytest.mark.parametrize("url", ["az://lake", "abfs://lake", f"abfss://lake@{ACCOUNT}.dfs.core.windows.net"])
def test_a_file_has_the_same_version_in_a_listing_and_by_its_name(container, url):
    folder = below(url, secrets.token_hex(4))
    for name in ("a b.txt", "sub/ü.txt"):
        inner, _, last = name.rpartition("/")
        with folder_at(below(folder, inner) if inner else folder).create(last) as file:
            file.write(b"one")
    listed = sorted(files_below(folder, recursive=True))
    assert [plain(each.path) for each in listed] == [f"{plain(folder)}/{name}" for name in ("a b.txt", "sub/ü.txt")]
    assert [looked_up(each.path) for each in listed] == listed
    assert all(each.version for each in listed)
