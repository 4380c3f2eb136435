"""A room for each document."""

import pytest

from tests.docs.running import Room, forgetting_modules


@pytest.fixture
def room(tmp_path, monkeypatch, request):
    with forgetting_modules(tmp_path):
        yield Room(tmp_path, monkeypatch, request.getfixturevalue)
