"""Free ports for servers of tests: `python3 ports.py COUNT` prints some.

They are below those that systems give to connections, any of which may get a port before its server listens.
"""

import random
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack

PORTS = range(10_000, 32_768)


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
