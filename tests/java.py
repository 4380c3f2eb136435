"""How tests start Java, of which there is much: for a short life, and with the archive that `make test` has made."""

import sys
from pathlib import Path

from dagkit.backends.spark.session.class_archive import options_to_use, usable
from dagkit.backends.spark.session.java import ensure_java
from dagkit.backends.spark.session.session import archive_of_driver
from tests.services.ports import free_ports

_CONNECT_SERVER = Path(__file__).parent / "backends" / "connect_server.py"


def quick_java() -> str:
    """Options for a Java of Spark that lives for some minutes only."""
    quick, archive = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", archive_of_driver({})
    return f"{quick} {options_to_use(archive, ensure_java())}" if archive and usable(archive) else quick


def connect_server(port: str | None = None) -> list[str]:
    """The command that starts a Spark Connect server at a port, or at a free one; it prints `PORT` and the port."""
    return [sys.executable, str(_CONNECT_SERVER), port or str(free_ports(1)[0]), quick_java()]
