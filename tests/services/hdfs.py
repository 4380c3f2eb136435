"""A real HDFS for tests: `hdfs.sh` runs it, and it ends with the process that started it."""

import getpass
from pathlib import Path

from tests.services.scripted import ScriptedServer

BLOCK = 2 << 20
"""The bytes of a block."""


class Hdfs(ScriptedServer):
    """A NameNode with one DataNode."""

    script = Path(__file__).with_name("hdfs.sh")
    is_fetched = True

    @property
    def url(self) -> str:
        """The root, for the user that owns it."""
        return f"webhdfs://{getpass.getuser()}@127.0.0.1:{self._ports[0]}"
