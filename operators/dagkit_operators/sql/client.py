"""The properties of operators that connect to a database."""

from pydantic import Field, SecretStr, field_validator

from dagkit import Operator
from dagkit_operators.sql.databases import Connection, check_url, connected


class SqlClient(Operator):
    """An operator that connects to a database: to a file of SQLite, or to PostgreSQL."""

    url: str = Field(default=...)
    """The database: `sqlite:///` and a path, or `postgresql://user@host:port/database` with options after a `?`.

    A relative path of SQLite starts from the working directory of the launch. Only a writer that may create its table
    creates the file. `?timeout_millis=100` says how long
    SQLite waits for a lock, by default five seconds.
    """
    password: SecretStr | None = None
    """The password of the user in the url. No message and no plan shows it."""

    @field_validator("url")
    @classmethod
    def _names_a_database(cls, url: str) -> str:
        return check_url(url)

    def connected(self, home: str = "", *, creates: bool = False) -> Connection:
        """Connect to the database. A missing file of SQLite is created if `creates` is set, else refused."""
        password = None if self.password is None else self.password.get_secret_value()
        return connected(self.url, password, home, creates=creates)
