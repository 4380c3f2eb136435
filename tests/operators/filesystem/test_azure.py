"""Files in Azure are found as in other object stores: by their names, with the versions of their contents."""

import secrets

import pytest

from dagkit.engine.files.folders import folder_at
from dagkit.ground.urls import below, plain
from dagkit_operators.filesystem.access import looked_up
from dagkit_operators.filesystem.listing import files_below
from tests.services.scripted import ACCOUNT

pytestmark = pytest.mark.slow


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
