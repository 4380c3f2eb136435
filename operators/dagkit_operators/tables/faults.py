"""What a table, or the database or storage that holds it, may refuse."""

from dagkit.errors import RunFailure


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
