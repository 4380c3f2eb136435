"""Where an application runs, and the start of its Spark session."""

import subprocess
import sys

import pytest

START = """
import sys

from dagkit.machine import Machine

starting = Machine(master="spark://127.0.0.1:1").with_spark_starting()
loading = [name for name, module in sys.modules.items() if name.startswith("pyspark") and module.__spec__._initializing]
print("pyspark.sql" in sys.modules, loading)
starting.starting.exception()
"""


@pytest.mark.slow
def test_pyspark_is_imported_before_another_thread_starts_it() -> None:
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)  # noqa: S603 - our own program
    assert done.stdout == "True []\n"
