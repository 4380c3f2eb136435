"""What the ledger's tests have in common."""

import pytest
from click.testing import CliRunner

from dagkit.cli.inspecting.ledger import ledger as group
from dagkit.ledger.stores import LocalStore
from tests.ledger.desk import Desk


@pytest.fixture
def desk():
    return Desk()


@pytest.fixture
def here(tmp_path):
    """A ledger in a folder, with two windows committed."""
    desk = Desk(LocalStore(tmp_path / "app", durable=False))
    for start in (0, 10):
        desk.discover((start, start + 10))
        desk.window(5, consumed=[(start, start + 10)])
    return desk


@pytest.fixture
def run(here):
    def run(*words, code=0):
        words = [str(here.store.root) if word == "PATH" else str(word) for word in words]
        answer = CliRunner().invoke(group, words)
        assert answer.exception is None or isinstance(answer.exception, SystemExit), repr(answer.exception)
        assert answer.exit_code == code, answer.output
        return answer

    return run
