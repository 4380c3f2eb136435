"""Free ports for servers of tests: `python3 ports.py COUNT` prints some.

They are below those that this system gives to connections, any of which may get a port before its server listens.
"""

import random
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

_FIRST = 10_000
_FEWEST = 1_000
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def _ports() -> range:
    """The ports to choose from. If almost all are given to connections, they are the usual ones nevertheless."""
    end = int(_EPHEMERAL.read_text().split()[0]) if _EPHEMERAL.exists() else 32_768
    return range(_FIRST, end if end >= _FIRST + _FEWEST else 32_768)


PORTS = _ports()


def free_ports(count: int) -> Sequence[int]:
    """Ports that no process listens on."""
    with ExitStack() as held:
        found: list[int] = []
        while len(found) < count:
            port = random.choice(PORTS)  # noqa: S311 - several runs of tests must not take the same ones
            try:
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:  # it is taken
                continue
            found.append(port)
        return found


if __name__ == "__main__":
    sys.stdout.write(" ".join(map(str, free_ports(int(sys.argv[1])))))
