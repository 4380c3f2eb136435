"""What the ledger's tests have in common."""

import pytest
from click.testing import CliRunner

from dagkit.cli.inspecting.ledger import ledger as group
from dagkit.ledger.stores import LocalStore
from tests.ledger.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def here(tmp_path) -> Desk:
    """A ledger in a folder, with two windows committed."""
    desk = Desk(LocalStore(tmp_path / "app", durable=False))
    for start in (0, 10):
        desk.discover((start, start + 10))
        desk.window(5, consumed=[(start, start + 10)])
    return desk


@pytest.fixture
def run(here):
    def run(*words, code=0):
        words = [str(here.store.root) if word == "PATH" else str(word) for word in words]
        answer = CliRunner().invoke(group, words)
        assert answer.exception is None or isinstance(answer.exception, SystemExit), repr(answer.exception)
        assert answer.exit_code == code, answer.output
        return answer

    return run


@pytest.fixture(scope="session")
def bucket(tmp_path_factory):
    """An S3 server that speaks HTTP, and a bucket in it."""
    boto3 = pytest.importorskip("boto3")
    moto = pytest.importorskip("moto.server")

    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="ledgers")
    yield endpoint
    server.stop()
