"""Runs the message ingest until it is stopped, and prints each step of each window, for a test that kills it."""

import sys

from pydantic import SecretStr

from apps.message_ingest.app import MessageIngest
from dagkit.engine.program.points import Point
from dagkit.launching import Machine, launch


def report(point: Point, window_id: int) -> None:
    print(point, window_id, flush=True)  # noqa: T201 - the test reads it


if __name__ == "__main__":
    url, queue, until, backend = sys.argv[1:]
    launch(
        MessageIngest(url=SecretStr(url), queue=queue),
        {"dt.operator.Splitter.prop.blockSize": 20},
        path="app",
        until=until,
        machine=Machine(backend=backend, cores=2),
        probe=report,
    )
