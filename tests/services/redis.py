"""A real Redis for tests: `redis.sh` runs it, and it ends with the process that started it."""

from pathlib import Path

from tests.services.scripted import ScriptedServer


class Redis(ScriptedServer):
    """A server that keeps everything in memory."""

    script = Path(__file__).with_name("redis.sh")
