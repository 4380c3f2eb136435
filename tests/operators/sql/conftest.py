"""Databases: SQLite, a real PostgreSQL, and those that a module of Python connects to."""

import itertools

import pytest

from tests.operators.sql.sql_cast import Database, TestDatabase
from tests.services.postgres import PASSWORD
from tests.services.scripted import MariaServer


@pytest.fixture
def sqlite(tmp_path):
    return TestDatabase(f"sqlite:///{tmp_path}/rows.db")


@pytest.fixture
def on_postgres(postgres):
    return TestDatabase(postgres.new_database(), PASSWORD)


@pytest.fixture(params=["sqlite", pytest.param("on_postgres", marks=pytest.mark.service("postgres"))])
def database(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def pep249(tmp_path):
    """SQLite by the module of Python, which has the interface of PEP 249."""
    return Database("sqlite3", {"database": str(tmp_path / "module.db")})


@pytest.fixture
def duckdb(tmp_path):
    """DuckDB by its interface of ADBC."""
    return Database("adbc_driver_duckdb.dbapi", {"path": str(tmp_path / "rows.duckdb")})


OF_MODULES = ["pep249", "duckdb", pytest.param("mariadb", marks=[pytest.mark.trial, pytest.mark.service("mariadb")])]


@pytest.fixture(params=OF_MODULES)
def of_module(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["sqlite", *OF_MODULES])
def here(request):
    """A database of each kind but PostgreSQL."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["sqlite", pytest.param("on_postgres", marks=pytest.mark.service("postgres")), *OF_MODULES])
def any_database(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def maria(tmp_path_factory):
    with MariaServer(tmp_path_factory.mktemp("maria")) as server:
        yield server


_names = itertools.count(1)


@pytest.fixture
def mariadb(maria):
    pytest.importorskip("pymysql", reason="run: pip install pymysql")
    quotes = ("SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",)
    name = f"rows_{next(_names)}"
    Database("pymysql", maria.options(), quotes, PASSWORD).rows(f"CREATE DATABASE {name}")
    return Database("pymysql", maria.options(name), quotes, PASSWORD)
