"""Jobs that can be stopped: whatever a thread runs while it has a tag ends when any thread interrupts the tag."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is that of a Spark Connect client."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


class Jobs:
    """The jobs that one backend runs on a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._tag = f"dagkit-{uuid4().hex}"
        if is_connect(spark):
            self._add, self._remove, self._interrupt = spark.addTag, spark.removeTag, spark.interruptTag
        else:  # there a session's tags are known to the thread alone that added them; a context's are known to all
            context: Any = spark.sparkContext
            context.setInterruptOnCancel(True)
            self._add, self._remove = context.addJobTag, context.removeJobTag
            self._interrupt = context.cancelJobsWithTag

    @contextmanager
    def tagged(self) -> Iterator[None]:
        """What this thread runs in the meantime ends with `end`, or with whatever interrupts the thread."""
        own = f"{self._tag}-{uuid4().hex}"
        self._add(self._tag)
        self._add(own)
        try:
            yield
        except BaseException:
            with suppress(Exception):  # where Spark itself is gone there is nothing to stop
                self._interrupt(own)
            raise
        finally:
            with suppress(Exception):
                self._remove(own)
                self._remove(self._tag)

    def end(self) -> None:
        """Nothing runs any more."""
        with suppress(Exception):  # where Spark itself is gone there is nothing to stop
            self._interrupt(self._tag)
