"""A real RabbitMQ broker for tests: `rabbitmq.sh` runs it, and it ends with the process that started it."""

import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import kombu
import pytest

SCRIPT = Path(__file__).with_name("rabbitmq.sh")
MISSING = 69
"""The script's exit code if RabbitMQ is not installed."""


class RabbitMQ:
    """A broker with one node, whose data are kept when it is killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port: Sequence[str] = ()
        self._process: subprocess.Popen[str] | None = None
        self._broker = 0

    def start(self) -> Self:
        """Run the broker on its port, and wait until it answers. Skip the test if RabbitMQ is missing."""
        command = [str(SCRIPT), "run", str(self._folder), *self._port]
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        ready = process.stdout.readline().split()
        if not ready:
            _, problem = process.communicate()
            if process.returncode == MISSING:
                pytest.skip(problem.strip())
            raise AssertionError(problem)
        self._process, self._port, self._broker = process, ready[1:2], int(ready[2])
        return self

    def kill(self) -> None:
        """Kill the broker, as `kill -9` does."""
        assert self._process is not None
        os.kill(self._broker, signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self._port[0]}//"

    def send(self, queue: str, messages: Iterable[str], **properties: str) -> None:
        """Append messages to a durable queue, each with an ID of its own."""
        send(self.url, queue, messages, **properties)

    def left(self, queue: str) -> int:
        """How many messages are in a queue, once no consumer has any of them."""
        return left(self.url, queue)


def send(url: str, queue: str, messages: Iterable[str], **properties: str) -> None:
    """Append messages to a durable queue, which is created if it does not exist."""
    confirmed = {"confirm_publish": True} if url.startswith("amqp") else {}  # or a killed broker may lose it
    with kombu.Connection(url, transport_options=confirmed) as connection:
        producer = connection.Producer()
        there = kombu.Queue(queue, durable=True)
        there(connection.default_channel).declare()
        for number, message in enumerate(messages):
            given = {"message_id": f"{queue}-{number}-{message}", **properties}
            producer.publish(message, routing_key=queue, content_type="text/plain", delivery_mode=2, **given)


def left(url: str, queue: str) -> int:
    """How many messages a queue holds."""
    with kombu.Connection(url) as connection:
        return int(kombu.Queue(queue)(connection.default_channel).queue_declare(passive=True).message_count)
