"""Structured Streaming: from topic to topic, as in its guide. Its sink writes messages at least once, not once."""

import os
from functools import cache
from pathlib import Path
from typing import Any

from bench.messages.task import Task, task_in, until_stopped


@cache
def _session() -> Any:
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {os.environ['DAGKIT_BENCH_JARS']} pyspark-shell"
    from bench.ingesting.with_spark import _session as spark_session  # noqa: PLC0415 - after the setting

    return spark_session()


def passed(content: bytes) -> bytes:
    """The function that is called for each message."""
    return content


def _query(task: Task, folder: Path, start: str, *, calls: bool = False) -> Any:
    at = {"kafka.bootstrap.servers": task.address}
    messages = _session().readStream.format("kafka").options(subscribe=task.source, startingOffsets=start, **at).load()
    value: Any = "value"
    if calls:
        from pyspark.sql.functions import udf  # noqa: PLC0415 - after the setting of the session

        value = udf(passed, "binary")("value").alias("value")
    copied = messages.select("key", value).writeStream.format("kafka").options(topic=task.target, **at)
    return copied.option("checkpointLocation", (folder / "checkpoint").as_uri())


def available(task: Path, folder: Path) -> None:
    """Copy what is there, with the trigger `availableNow`."""
    _query(task_in(task), folder, "earliest").trigger(availableNow=True).start().awaitTermination()


def with_function(task: Path, folder: Path) -> None:
    """The same with a function in Python that gets the content of each message."""
    query = _query(task_in(task), folder, "earliest", calls=True)
    query.trigger(availableNow=True).start().awaitTermination()


def running(task: Path, folder: Path) -> None:
    """Copy what arrives with the default trigger, until the benchmark asks to stop."""
    query = _query(task_in(task), folder, "earliest").start()
    until_stopped(folder)
    query.stop()
