"""What can be done about an error of a database, by its text: a connection that fails has no SQLSTATE."""

import pytest
from adbc_driver_manager import AdbcStatusCode, OperationalError

from dagkit_operators.sql.faults import Kind, kind_of


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("the database system is starting up", Kind.AWAY),
        ("the database system is not yet accepting connections", Kind.AWAY),
        ("the database system is not accepting connections", Kind.AWAY),
        ("the database system is in recovery mode", Kind.AWAY),
        ("the database system is shutting down", Kind.AWAY),
        ("terminating connection due to unexpected postmaster exit", Kind.AWAY),
        ("terminating connection due to administrator command", Kind.AWAY),
        ("canceling authentication due to timeout", Kind.AWAY),
        ('database "orders" is not currently accepting connections', Kind.REFUSED),
        ('password authentication failed for user "dagkit"', Kind.REFUSED),
    ],
)
def test_a_server_that_starts_or_ends_is_waited_for_and_a_refusal_is_not(text, kind):
    failed = f'Failed to connect: connection to server at "127.0.0.1", port 5432 failed: FATAL:  {text}'
    assert kind_of(OperationalError(failed, status_code=AdbcStatusCode.IO)) is kind
