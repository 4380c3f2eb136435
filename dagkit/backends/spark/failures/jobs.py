"""Spark jobs that can be stopped, and that Spark's own page describes.

Each has a tag, and any thread can interrupt all jobs with a tag.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from threading import Condition
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from dagkit.engine.program.failures import WindowLost

INTERRUPTED_EVERY_SECONDS = 0.1
"""How often `end` interrupts the jobs."""

_INTERRUPTS_TASKS = "spark.job.interruptOnCancel"
"""The property that `setInterruptOnCancel` sets."""
_DESCRIPTION = "spark.job.description"


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a Spark Connect session."""
    # By the name: its class cannot be imported without the packages of Spark Connect.
    return type(spark).__module__.startswith("pyspark.sql.connect")


class Jobs:
    """The jobs that one backend runs on a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._tag = f"dagkit-{uuid4().hex}"
        self._described: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()
        if is_connect(spark):
            self._add, self._remove, self._interrupt = spark.addTag, spark.removeTag, spark.interruptTag
        else:
            # In a classic session only the thread that added a tag can interrupt it. In its context, any thread can.
            context: Any = spark.sparkContext
            self._described = partial(_described, context)
            self._add, self._remove = context.addJobTag, context.removeJobTag
            self._interrupt = context.cancelJobsWithTag
        self._left = Condition()
        """Notified when a thread leaves `tagged`. It guards `_running` and `_ended`."""
        self._running = 0
        """The number of threads in `tagged`."""
        self._ended = False

    @contextmanager
    def tagged(self, description: str) -> Iterator[None]:
        """Tag and describe the jobs of this thread. `end` interrupts them, and so does an exception in the block."""
        with self._counted(), self._described(description), self._with_tags() as own:
            try:
                yield
            except BaseException:
                with suppress(Exception):  # if Spark itself has ended, no job is left to stop
                    self._interrupt(own)
                raise

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count this thread, for which `end` waits. Raise WindowLost if the backend is closed."""
        with self._left:
            if self._ended:
                raise WindowLost("the backend is closed and runs no more jobs")
            self._running += 1
        try:
            yield
        finally:
            with self._left:
                self._running -= 1
                self._left.notify_all()

    @contextmanager
    def _with_tags(self) -> Iterator[str]:
        """A new tag, which the jobs of this thread get besides the tag of all jobs."""
        own = f"{self._tag}-{uuid4().hex}"
        self._add(self._tag)
        self._add(own)
        try:
            yield own
        finally:
            # If Spark itself has ended, there are no tags to remove.
            with suppress(Exception):
                self._remove(own)
                self._remove(self._tag)

    def end(self) -> None:
        """Stop all jobs and refuse new ones. Return once no job runs."""
        with self._left:
            self._ended = True
            # Once is not enough: Spark ends its present jobs, and not one that a thread is about to submit.
            while self._running:
                with suppress(Exception):  # if Spark itself has ended, no job is left to stop
                    self._interrupt(self._tag)
                self._left.wait(INTERRUPTED_EVERY_SECONDS)


@contextmanager
def _described(context: Any, description: str) -> Iterator[None]:
    """Describe jobs, and interrupt the tasks of a cancelled one."""
    # A Spark context has these settings for each thread, so each thread that runs jobs makes them.
    properties = {_INTERRUPTS_TASKS: "true", _DESCRIPTION: description}
    before = {name: context.getLocalProperty(name) for name in properties}
    for name, value in properties.items():
        context.setLocalProperty(name, value)
    try:
        yield
    finally:
        with suppress(Exception):
            for name, value in before.items():
                context.setLocalProperty(name, value)
