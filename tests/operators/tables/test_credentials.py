"""Nothing shows the credentials in the URL of a storage or a catalog: no message, plan, ledger or record of a log."""

import logging

import pytest

from dagkit import Config
from dagkit.api.running import Until
from dagkit.compiler import compile_application
from dagkit.engine.failures import OperatorFailed
from dagkit.errors import ApplicationFaults
from dagkit.plan import write_plan
from dagkit.testing import FakeClock
from tests.engine.cast import Desk, files_in
from tests.operators.tables.lakes import DeltaLake, IcebergLake, Lake, rows_written

SECRETS = ("hunter2-planted", "hunter3%2Fplanted", "hunter3/planted")
AWAY = "http://me:hunter2-planted@127.0.0.1:1/root?sv=2024&sig=hunter3%2Fplanted"
"""Where nothing answers."""


def shown_in(text: str) -> list[str]:
    """The secrets that a text shows."""
    return [secret for secret in SECRETS if secret in text]


def test_the_text_that_is_searched_for_is_planted():
    assert shown_in(AWAY) == list(SECRETS[:2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        pytest.param(
            DeltaLake,
            {
                "uri": "s3://bucket/table",
                "storage_options": {
                    "AWS_ENDPOINT_URL": AWAY,
                    "AWS_ALLOW_HTTP": "true",
                    "AWS_REGION": "us-east-1",
                    "AWS_ACCESS_KEY_ID": "me",
                    "AWS_SECRET_ACCESS_KEY": "key",
                    "max_retries": "0",
                },
            },
            id="delta",
        ),
        pytest.param(IcebergLake, {"catalog": {"type": "rest", "uri": AWAY}}, id="iceberg in a service"),
        pytest.param(
            IcebergLake,
            {"catalog": {"type": "sql", "uri": "sqlite:////nowhere/catalog.db?sig=hunter3%2Fplanted"}},
            id="iceberg in a database",
        ),
    ],
)
def test_credentials_in_a_url_of_the_settings_are_shown_nowhere(tmp_path, kind, properties, caplog):
    lake: Lake = kind(tmp_path)
    draw = rows_written(lake, waits_seconds=2, **properties)
    plan = write_plan(compile_application(draw, Config.of({})).plan)
    desk = Desk(tmp_path, draw, until=Until.IDLE, clock=FakeClock())
    with caplog.at_level(logging.INFO), pytest.raises(OperatorFailed) as raised:
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
