"""A room for each document."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.running import Room, forgetting_modules


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Room]:
    with forgetting_modules(tmp_path):
        yield Room(tmp_path, monkeypatch, request.getfixturevalue)
