"""What the ledger's tests have in common."""

import pytest

from tests.ledger.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()
