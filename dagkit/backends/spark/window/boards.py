"""The board of a Spark backend: which windows have one, and where the workers find it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from pyspark.sql import SparkSession

from dagkit.api.attributes import DagContext
from dagkit.backends.spark.failures.jobs import is_connect
from dagkit.backends.spark.window.artifacts import workers_are_here
from dagkit.backends.spark.window.placing import speculates
from dagkit.engine.program.program import Program
from dagkit.engine.work.handover import SlotStanding
from dagkit.engine.work.summary import of_application
from dagkit.engine.worker.board_server import BoardServer
from dagkit.engine.worker.protocol import WindowTask

LOOPBACK = "127.0.0.1"

_logger = logging.getLogger(__name__)


class Boards:
    """Starts a board server with the first window, unless HAND_OVER_WORK is false or no slot could use it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._starting = Lock()
        self._is_reachable = True
        """Whether a slot of each window so far has connected: each idle slot waits for its connection."""
        self._server: BoardServer | None = None

    @contextmanager
    def serving(self, task: WindowTask, program: Program, cores: int) -> Iterator[WindowTask]:
        """Give the window a board if the workers can reach this process."""
        has_board = of_application(program, DagContext.HAND_OVER_WORK)  # without it, no port is opened
        slots, movable = program.queued_slots if has_board else {}, task.attempt.movable
        server = self._start_once() if slots and self._is_reachable else None
        if server is None:
            yield task
            return
        # Slots below an exchange begin only after the level above, so they do not wait for a core.
        first = frozenset(into for into in movable if program.stage_of[into.operator].level == 0)
        with server.window(task.window_id, slots, first, cores) as place:
            yield task.trying(board=place)
            if movable and self._is_reachable and not server.is_reached(place):
                self._is_reachable = False
                _logger.warning(
                    "no worker reached the driver at %s:%d, so slots hand no work over: set spark.driver.host to a "
                    "name of this machine that workers reach, or HAND_OVER_WORK to false",
                    place.host,
                    place.port,
                )

    def running(self) -> list[SlotStanding]:
        """The last report of each slot."""
        return [] if self._server is None else self._server.running()

    def close(self) -> None:
        """Cut all connections."""
        if self._server is not None:
            self._server.close()

    def _start_once(self) -> BoardServer | None:
        """The server, which the first call starts; None if no worker could use it."""
        # Two windows may be in flight, each in a thread of its own.
        with self._starting:
            # No worker reaches a client of Spark Connect. In a session that runs tasks twice, the slower attempt may
            # have given work away, and then the window would be lost.
            if self._server is None and not is_connect(self._spark) and not speculates(self._spark):
                setting = self._spark.conf.get
                if workers_are_here(self._spark):
                    self._server = BoardServer(LOOPBACK, LOOPBACK)
                else:
                    # Workers already reach Spark's own driver at these addresses.
                    host = setting("spark.driver.host", None) or LOOPBACK
                    self._server = BoardServer(host, setting("spark.driver.bindAddress", None) or host)
            return self._server
