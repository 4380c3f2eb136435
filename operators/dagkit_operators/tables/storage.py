"""Settings of storages and catalogs, what their errors mean, and what a table may refuse."""

import re
from collections.abc import Mapping
from typing import TypeVar

from pydantic import SecretStr

from dagkit import Unavailable
from dagkit.api.secrets import credentials_in
from dagkit.errors import RunFailure

S = TypeVar("S")


def database_refused(
    problem: str, remedy: str = "correct the url, the user, the password or the permissions"
) -> RunFailure:
    """A database, a catalog or a storage refuses the connection or the permission, and will do so again."""
    return RunFailure(problem, remedy, code="database-refused")


def table_mismatched(
    problem: str,
    remedy: str = "create or change the table, or correct the operator; the next launch continues, and delivers what "
    "is committed",
) -> RunFailure:
    """A table does not have the columns or the key that an operator needs."""
    return RunFailure(problem, remedy, code="table-mismatched")


class RowRefused(RunFailure):
    """A table refuses a row, for example because of a constraint."""

    code = "row-refused"

    def __init__(self, table: str, row: str, reason: str) -> None:
        super().__init__(
            f"{table} refuses {row}: {reason}; nothing of its window is in the table",
            "change the table or the rows that are in it; the window is committed, and the next launch delivers it",
        )


_REFUSED = re.compile(
    r"(?<![.:])\b(401|403)\b(?!\.\d)|AccessDenied|Forbidden|Unauthori[sz]ed|InvalidAccessKeyId|"
    r"SignatureDoesNotMatch|ExpiredToken|NoSuchBucket|[Pp]ermission denied|authentication failed|does not exist|"
    r"unable to open database|readonly database"
)
"""A number with a fraction is a duration, and one after a colon a port."""

_CONTAINERS = ("abfs://", "abfss://", "wasb://", "wasbs://")
"""URLs in which the name of a container stands in place of a user."""


def has_credentials(url: str) -> bool:
    """Whether a URL contains a query, which may be a signature, or a user."""
    user, query = credentials_in(url)
    return bool(query) or (":" in user if url.startswith(_CONTAINERS) else bool(user))


def hidden(settings: Mapping[str, str | SecretStr]) -> dict[str, str | SecretStr]:
    """Settings whose URLs with credentials are secret."""
    return {
        name: SecretStr(value) if isinstance(value, str) and has_credentials(value) else value
        for name, value in settings.items()
    }


def plain(settings: Mapping[str, S | SecretStr]) -> dict[str, S | str]:
    """Settings with the values of secrets."""
    return {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in settings.items()
    }


def storage_failure(error: Exception, table: str) -> RunFailure:
    """The failure for an error of a storage: it refuses the client, or it cannot be reached or has no room now."""
    text = f"{table}: {' '.join(str(error).split()):.400}"
    return database_refused(text) if _REFUSED.search(text) else Unavailable(text)
