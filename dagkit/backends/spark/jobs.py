"""Jobs that can be stopped: whatever a thread runs while it has a tag ends when any thread interrupts the tag."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from threading import Condition
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from dagkit.engine.failures import WindowLost

INTERRUPTED_EVERY_SECONDS = 0.1
"""How often what is to end is interrupted: Spark ends the jobs that it has, and knows nothing of those to come."""

_INTERRUPTS_TASKS = "spark.job.interruptOnCancel"
"""What `setInterruptOnCancel` sets."""


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is that of a Spark Connect client."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


class Jobs:
    """The jobs that one backend runs on a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._tag = f"dagkit-{uuid4().hex}"
        self._interrupting: Callable[[], AbstractContextManager[None]] = nullcontext
        if is_connect(spark):
            self._add, self._remove, self._interrupt = spark.addTag, spark.removeTag, spark.interruptTag
        else:  # there a session's tags are known to the thread alone that added them; a context's are known to all
            context: Any = spark.sparkContext
            self._interrupting = partial(_interrupting_tasks, context)
            self._add, self._remove = context.addJobTag, context.removeJobTag
            self._interrupt = context.cancelJobsWithTag
        self._left = Condition()
        """Notified when a thread leaves `tagged`; held while the two below are read."""
        self._running = 0
        """How many threads are in `tagged`."""
        self._ended = False

    @contextmanager
    def tagged(self) -> Iterator[None]:
        """What this thread runs in the meantime ends with `end`, or with whatever interrupts the thread."""
        with self._counted(), self._interrupting(), self._with_tags() as own:
            try:
                yield
            except BaseException:
                with suppress(Exception):  # where Spark itself is gone there is nothing to stop
                    self._interrupt(own)
                raise

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """`end` waits for this thread."""
        with self._left:
            if self._ended:
                raise WindowLost("nothing runs any more on a backend that is closed")
            self._running += 1
        try:
            yield
        finally:
            with self._left:
                self._running -= 1
                self._left.notify_all()

    @contextmanager
    def _with_tags(self) -> Iterator[str]:
        """The tag of what this thread runs in the meantime, which has that of all jobs, too."""
        own = f"{self._tag}-{uuid4().hex}"
        self._add(self._tag)
        self._add(own)
        try:
            yield own
        finally:
            with suppress(Exception):
                self._remove(own)
                self._remove(self._tag)

    def end(self) -> None:
        """Nothing runs any more, and nothing begins."""
        with self._left:
            self._ended = True
            while self._running:
                with suppress(Exception):  # where Spark itself is gone there is nothing to stop
                    self._interrupt(self._tag)
                self._left.wait(INTERRUPTED_EVERY_SECONDS)


@contextmanager
def _interrupting_tasks(context: Any) -> Iterator[None]:
    """No task of what this thread runs in the meantime outlives its job; a context keeps this by thread."""
    before = context.getLocalProperty(_INTERRUPTS_TASKS)
    context.setInterruptOnCancel(True)
    try:
        yield
    finally:
        with suppress(Exception):
            context.setLocalProperty(_INTERRUPTS_TASKS, before)
