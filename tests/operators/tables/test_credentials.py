"""Nothing shows the credentials in the URL of a storage or a catalog: no message, plan, ledger or record of a log."""

import logging

import pytest

from dagkit import Config, Until
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from dagkit.plan import write_plan
from dagkit.testing import FakeClock
from tests.cases import cases
from tests.engine.cast import Desk, files_in
from tests.operators.tables.lakes import DeltaLake, IcebergLake, rows_written
from tests.operators.ways import refused

SECRETS = ("hunter2-planted", "hunter3%2Fplanted", "hunter3/planted")
AWAY = "http://me:hunter2-planted@127.0.0.1:1/root?sv=2024&sig=hunter3%2Fplanted"
"""Where nothing answers."""


def shown_in(text):
    """The secrets that a text shows."""
    return [secret for secret in SECRETS if secret in text]


IN_S3 = {
    "AWS_ENDPOINT_URL": AWAY,
    "AWS_ALLOW_HTTP": "true",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "me",
    "AWS_SECRET_ACCESS_KEY": SECRETS[2],
    "max_retries": "0",
}
SERVICE = {"type": "rest", "uri": AWAY}
DATABASE = {"type": "sql", "uri": "sqlite:////nowhere/catalog.db?sig=hunter3%2Fplanted"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Query string argument")  # SQLite takes no credentials in a URL
@cases(
    "kind, properties, code",
    ("delta", DeltaLake, {"uri": "s3://bucket/table", "storage_options": IN_S3}, "system-unavailable"),
    ("iceberg in a service", IcebergLake, {"catalog": SERVICE}, "system-unavailable"),
    ("iceberg in a database", IcebergLake, {"catalog": DATABASE}, "database-refused"),
)
def test_a_system_that_is_away_is_reported_and_its_credentials_are_shown_nowhere(
    tmp_path, *, kind, properties, code, caplog
):
    draw = rows_written(kind(tmp_path), waits_seconds=2, **properties)
    plan = write_plan(compile_application(draw, Config.of({})).plan)
    desk = Desk(tmp_path, draw, until=Until.IDLE, clock=FakeClock())
    with caplog.at_level(logging.INFO), refused(code) as raised:
        desk.run()
    ledger = b"".join(path.read_bytes() for path in files_in(tmp_path / "app")).decode("utf-8", "replace")
    assert ledger
    assert shown_in(f"{plan} {raised.value} {raised.value.__cause__!r} {caplog.text} {ledger}") == []


@pytest.mark.parametrize(
    "uri",
    [
        "az://container/table?sv=2024&sig=hunter2-planted",
        "https://account.blob.core.windows.net/container/table?sig=hunter2-planted",
        "s3://me:hunter2-planted@bucket/table",
        "https://hunter2-planted@host/table",
        "abfss://container:hunter2-planted@account.dfs.core.windows.net/table",
    ],
)
def test_the_uri_of_a_delta_table_is_refused_if_it_shows_credentials(tmp_path, uri):
    with pytest.raises(ApplicationFaults, match="the uri shows a user or a query") as raised:
        compile_application(rows_written(DeltaLake(tmp_path), uri=uri), Config.of({}))
    assert shown_in(str(raised.value)) == []


@pytest.mark.parametrize("uri", ["lake/what?/table", "abfss://container@account.dfs.core.windows.net/table"])
def test_a_uri_without_credentials_is_taken(tmp_path, uri):
    assert DeltaLake(tmp_path).writer(uri=uri).uri == uri
