"""A Spark Connect server on this machine, at a free port or at a named one: `connect_server.py [PORT]`.

It prints its port, and runs until its standard input is closed.
"""

import os
import socket
import sys

from pyspark.sql import SparkSession

from dagkit.backends.spark.java import ensure_java


def main() -> None:
    """Serve until the input ends."""
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0))
        port = free.getsockname()[1]
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
        .config("spark.sql.artifact.isolation.enabled", "true")
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
        .config("spark.connect.grpc.binding.port", str(port))
        .getOrCreate()
    )
    sys.stdout.write(f"PORT {port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    main()
