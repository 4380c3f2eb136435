"""What can be done about an error of a database, by its text: a connection that fails has no SQLSTATE."""

import pytest
from adbc_driver_manager import AdbcStatusCode, OperationalError

from dagkit_operators.sql.faults import Kind, kind_of

AWAY = [
    "the database system is starting up",
    "the database system is not yet accepting connections",
    "the database system is not accepting connections",
    "the database system is in recovery mode",
    "the database system is shutting down",
    "terminating connection due to unexpected postmaster exit",
    "terminating connection due to administrator command",
    "canceling authentication due to timeout",
]
REFUSED = [
    'database "orders" is not currently accepting connections',
    'password authentication failed for user "dagkit"',
]


@pytest.mark.parametrize("text", AWAY + REFUSED)
def test_a_server_that_starts_or_ends_is_waited_for_and_a_refusal_is_not(text):
    failed = f'Failed to connect: connection to server at "127.0.0.1", port 5432 failed: FATAL:  {text}'
    expected = Kind.AWAY if text in AWAY else Kind.REFUSED
    assert kind_of(OperationalError(failed, status_code=AdbcStatusCode.IO)) is expected
