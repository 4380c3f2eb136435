"""The errors of databases, by what can be done about them."""

import re
from enum import Enum, auto
from typing import Any

from dagkit import Unavailable
from dagkit_operators.tables.storage import database_refused, table_mismatched


class Kind(Enum):
    """What can be done about an error."""

    AWAY = auto()
    """Try again later."""
    REFUSED = auto()
    """Change the connection."""
    ROWS = auto()
    """Change a row or a constraint."""
    STATEMENT = auto()
    """Change the table or the statement."""


_BY_STATE = (
    # The connection failed, there is no room, the server stops or has an error of its system, the transaction met
    # another one, a lock is held, or the server only reads, as one that stands by.
    (Kind.AWAY, ("08", "53", "57", "58", "40", "55P03", "25006")),
    (Kind.REFUSED, ("28", "42501", "3D")),
    (Kind.ROWS, ("21", "22", "23")),
    (Kind.STATEMENT, ("",)),
)
"""By the beginning of SQLSTATE, the first that fits."""
# A database that starts, ends or has no room for a connection is away, and was once taken for one that refuses.
_BY_TEXT = (
    (
        Kind.AWAY,
        (
            r"is locked|disk is full|disk I/O error|starting up|shutting down|recovery mode|too many (clients|conn)|"
            r"remaining connection slots|system is not (yet )?accepting connections|terminating connection|"
            r"canceling authentication|could not fork|out of memory"
        ),
    ),
    (
        Kind.REFUSED,
        (
            r"readonly database|failed to open|unable to open|failed: FATAL:|no password supplied|is not a database|"
            r"[Aa]ccess denied|[Uu]nknown database|authentication failed"
        ),
    ),
    (
        Kind.ROWS,
        (
            r"(?i)constraint .*failed|constraint (error|failed)|conversion error|datatype mismatch|"
            r"failed to execute: (?s:.)*query was: INSERT"
        ),
    ),
    (
        Kind.STATEMENT,
        r"(?i)no such (table|column)|doesn't (exist|have a default)|unknown column|catalog error|unsupported type",
    ),
)
"""By the text of an error without SQLSTATE: those of SQLite, MariaDB, DuckDB, and of a connection to PostgreSQL.

SQLite has compiled a statement before it executes it. What fails then, such as a trigger with a text of its own, is
about a row.
"""
_INTEGRITY = 8
"""The status of ADBC for a constraint, and for the trigger of an INSERT that SQLite does not do in bulk."""
_IO = 10
"""The status of ADBC for a failed connection."""
_BY_CLASS = {
    "IntegrityError": Kind.ROWS,
    "DataError": Kind.ROWS,
    "InterfaceError": Kind.AWAY,
    "OperationalError": Kind.AWAY,
}
"""By a class of PEP 249. ADBC has these, too, but its status is more exact."""


def kind_of(error: Any) -> Kind:
    """What can be done about an error of a driver of ADBC or PEP 249."""
    state, status = getattr(error, "sqlstate", None), getattr(error, "status_code", None)
    if state:
        return next(kind for kind, states in _BY_STATE if state.startswith(states))
    if status == _INTEGRITY:
        return Kind.ROWS
    for kind, pattern in _BY_TEXT:
        if re.search(pattern, str(error)):
            return kind
    if status is None:
        kinds = (_BY_CLASS[base.__name__] for base in type(error).mro() if base.__name__ in _BY_CLASS)
        return next(kinds, Kind.STATEMENT)
    return Kind.AWAY if status == _IO else Kind.STATEMENT


def text_of(error: Exception) -> str:
    """The text of an error in one line, without what the driver adds."""
    text = re.sub(
        r"^([A-Z_]+: )?(failed to execute: )?|\[libpq\] |\. SQLSTATE: \w+$|PGRES_FATAL_ERROR ERROR: +"
        r"|(\[SQLite\] )?Failed to prepare query: (ERROR: +)?",
        "",
        str(error),
    )
    return " ".join(re.split(r"\n(?:LINE \d+|[Qq]uery(?: was)?): ?", text)[0].split())


def failure_of(error: Any, database: str) -> Exception:
    """The failure for an error of a driver. A row that is refused is found by the caller."""
    text = f"{database}: {text_of(error)}"
    match kind_of(error):
        case Kind.AWAY:
            return Unavailable(text)
        case Kind.REFUSED:
            return database_refused(text)
        case _:
            return table_mismatched(text)
