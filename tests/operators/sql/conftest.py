"""Databases: SQLite, and a real PostgreSQL."""

import pytest

from tests.operators.sql.sql_cast import TestDatabase
from tests.services.postgres import PASSWORD


@pytest.fixture
def sqlite(tmp_path):
    return TestDatabase(f"sqlite:///{tmp_path}/rows.db")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service("postgres"))])
def database(request):
    """An empty database of either kind."""
    if request.param == "sqlite":
        found: TestDatabase = request.getfixturevalue("sqlite")
        return found
    return TestDatabase(request.getfixturevalue("postgres").new_database(), PASSWORD)
