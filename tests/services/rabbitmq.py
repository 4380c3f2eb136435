"""A real RabbitMQ broker for tests: `rabbitmq.sh` runs it, and it ends with the process that started it."""

from collections.abc import Iterable
from pathlib import Path

import kombu

from tests.services.scripted import ScriptedServer


class RabbitMQ(ScriptedServer):
    """A broker with one node."""

    script = Path(__file__).with_name("rabbitmq.sh")

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@{self.address}//"

    @property
    def tls_url(self) -> str:
        """The URL of the listener with TLS, which exists if the folder has a certificate."""
        return f"amqps://guest:guest@127.0.0.1:{self._ports[1]}//"

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
