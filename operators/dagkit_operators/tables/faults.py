"""What a table, or the database or storage that holds it, may refuse."""

from dagkit.errors import RunFailure


class DatabaseRefused(RunFailure):
    """A database, a catalog or a storage refuses the connection or the permission, and will do so again."""

    code = "database-refused"
    usual_help = "correct the url, the user, the password or the permissions"


class TableMismatched(RunFailure):
    """A table does not have the columns or the key that an operator needs."""

    code = "table-mismatched"
    usual_help = "change the table or the operator; what is committed is delivered by the next launch"
