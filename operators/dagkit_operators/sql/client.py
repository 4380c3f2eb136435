"""The properties of operators that connect to a database."""

from pydantic import Field, SecretStr, field_validator

from dagkit import Operator
from dagkit_operators.sql.databases import Connection, check_url, connected


class SqlClient(Operator):
    """An operator that connects to a database: to a file of SQLite, or to PostgreSQL."""

    url: str = Field(default=...)
    """The database: `sqlite:///` and a path, or `postgresql://user@host:port/database` with options after a `?`.

    A relative path of SQLite starts from the working directory of the launch. `?timeout_millis=100` says how long
    SQLite waits for a lock, by default five seconds.
    """
    password: SecretStr | None = None
    """The password of the user in the url. No message and no plan shows it."""

    @field_validator("url")
    @classmethod
    def _names_a_database(cls, url: str) -> str:
        return check_url(url)

    def connected(self, home: str = "") -> Connection:
        """Connect to the database."""
        return connected(self.url, None if self.password is None else self.password.get_secret_value(), home)
