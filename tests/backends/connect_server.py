"""A Spark Connect server on this machine: `connect_server.py PORT JAVA_OPTIONS`.

It prints its port, and runs until its standard input is closed.
"""

import os
import sys

from pyspark.sql import SparkSession

from dagkit.backends.spark.session.java import ensure_java


def main() -> None:
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    port, java_options = sys.argv[1:]
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.extraJavaOptions", java_options)
        .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
        .config("spark.sql.artifact.isolation.enabled", "true")
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
        .config("spark.connect.grpc.binding.port", port)
        .getOrCreate()
    )
    sys.stdout.write(f"PORT {port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    main()
