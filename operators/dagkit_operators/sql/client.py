"""What operators that connect to a database have in common."""

import importlib
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, SecretStr, StrictBool, field_validator, model_validator

from dagkit import Operator
from dagkit_operators.sql.any_database import AnyDatabase
from dagkit_operators.sql.connection import Connection
from dagkit_operators.sql.databases import check_url, connect
from dagkit_operators.tables.storage import database_refused

Option = Annotated[StrictBool | int | str, Field(union_mode="left_to_right")]
"""An option of a driver. A number from a property file is one, not text."""


class SqlClient(Operator):
    """An operator that connects to a database: to SQLite or PostgreSQL by a URL, to others by a module of Python."""

    url: str = ""
    """The database: `sqlite:///` and a path, or `postgresql://user@host:port/database` with options after a `?`.

    A relative path of SQLite starts from the working directory of the launch. Only a writer that may create its table
    creates the file. `?timeout_millis=100` sets how long SQLite waits for a lock, by default five seconds.
    """
    driver: str = ""
    """In place of a URL: a module with the interface of PEP 249, such as `pymysql`, or of ADBC, such as
    `adbc_driver_duckdb.dbapi`. It is installed on each machine that runs workers, too."""
    options: Mapping[str, Option] = {}
    """What `connect` of the driver takes, such as host, user and database."""
    session: tuple[str, ...] = ()
    """Statements to execute on each connection by a driver."""
    password: SecretStr | None = None
    """The password of the user. No message and no plan shows it. `connect` of a driver takes it by this name."""

    @field_validator("url")
    @classmethod
    def _names_a_database(cls, url: str) -> str:
        return check_url(url) if url else url

    @model_validator(mode="after")
    def _connects_by_one(self) -> Self:
        if bool(self.url) == bool(self.driver):
            raise ValueError("set either url or driver")
        if self.url and (self.options or self.session):
            raise ValueError("options and session belong to a driver: write options of a url after a ?")
        if "password" in self.options:
            raise ValueError("the options show a password: set the property `password` instead")
        return self

    @property
    def database(self) -> str:
        """The database in messages."""
        places = (str(self.options[name]) for name in ("host", "database", "path") if name in self.options)
        return self.url or " ".join((self.driver, *places))

    def connect(self, home: str = "", *, creates: bool = False) -> Connection:
        """Connect to the database. A missing file of SQLite is created if `creates` is set, else refused."""
        password = None if self.password is None else self.password.get_secret_value()
        if self.url:
            return connect(self.url, password, home, creates=creates)
        try:
            module = importlib.import_module(self.driver)
        except ImportError as error:
            problem = f"the driver {self.driver} cannot be imported: {error}"
            raise database_refused(problem, "install it, on each machine that runs workers, too") from error
        secret = {} if password is None else {"password": password}
        return AnyDatabase(self.database, module, {**self.options, **secret}, self.session)
