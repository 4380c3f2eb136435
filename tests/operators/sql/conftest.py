"""Databases: SQLite, and a real PostgreSQL."""

import pytest

from tests.operators.sql.sql_cast import TestDatabase
from tests.services.postgres import PASSWORD


@pytest.fixture
def sqlite(tmp_path):
    return TestDatabase(f"sqlite:///{tmp_path}/rows.db")


@pytest.fixture
def on_postgres(postgres):
    return TestDatabase(postgres.new_database(), PASSWORD)


@pytest.fixture(params=["sqlite", pytest.param("on_postgres", marks=pytest.mark.service("postgres"))])
def database(request):
    """An empty database of either kind."""
    return request.getfixturevalue(request.param)
