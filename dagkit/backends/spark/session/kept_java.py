"""A Java with Spark that outlives launches: one process keeps it running, and others use its Spark one after another.

The process that keeps it starts it like a launch, and tidies it between two launches. Each launch connects to it with
the gateway's secret, and has a session and workers of its own.
"""

import time
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark import SparkContext
from pyspark.sql import SparkSession

from dagkit.backends.spark.session.kept_workers import are_prepared
from dagkit.backends.spark.session.recording import run_windows
from dagkit.backends.spark.session.session import spark_incomplete
from dagkit.ground.clock import patient

_WORKERS_END_WITHIN_SECONDS = 5.0


class KeptJava:
    """The Java of this process, which it keeps for launches."""

    def __init__(self, session: SparkSession) -> None:
        """Run windows, so that Java has loaded what they need. Raise `spark-incomplete` if the workers are not ours."""
        self._session = session
        context: Any = session.sparkContext
        slots = context.parallelize(range(context.defaultParallelism), context.defaultParallelism)
        if not all(slots.mapPartitionsWithIndex(are_prepared).collect()):
            raise spark_incomplete(
                "Spark's settings name another Python or another daemon for its workers, whose state would pass from "
                "one launch to the next",
                "remove these settings, or launch without a warm driver",
            )
        run_windows(session)
        self._java: Any = SparkContext._jvm  # noqa: SLF001 - nothing public reaches Java
        self._gateway: Any = SparkContext._gateway  # noqa: SLF001 - as above
        self._end_launch()
        self._own = list(self._references().keySet())

    @property
    def address(self) -> dict[str, Any]:
        """What a launch needs in order to use this Java."""
        parameters = self._gateway.gateway_parameters
        return {"port": parameters.port, "secret": parameters.auth_token}

    def tidy(self) -> None:
        """Stop the jobs and the workers of the last launch, and release what it kept in memory."""
        self._end_launch()
        self._references().keySet().retainAll(self._own)

    def _end_launch(self) -> None:
        context: Any = self._session.sparkContext
        context.cancelAllJobs()
        self._end_workers()
        self._session.catalog.clearCache()
        for data in context._jsc.getPersistentRDDs().values():  # noqa: SLF001 - nothing public lists them
            data.unpersist()

    def _end_workers(self) -> None:
        """End all workers, and wait until they have ended."""
        # Spark could give a worker that still ends to the next launch.
        until = time.monotonic() + patient(_WORKERS_END_WITHIN_SECONDS)
        while workers := self._workers():
            if time.monotonic() > until:
                raise TimeoutError("the workers of the last launch do not end")
            for worker in workers:
                worker.destroyForcibly()
            time.sleep(0.002)

    def _workers(self) -> list[Any]:
        """The processes that children of Java have forked."""
        # Spark SQL has another child that forks workers than jobs on RDDs have.
        children = self._java.java.lang.ProcessHandle.current().children().toList()
        return [worker for child in children for worker in child.children().toList()]

    def end(self) -> None:
        """End Java, and wait until it has ended."""
        self._gateway.shutdown()
        self._gateway.proc.stdin.close()
        self._gateway.proc.wait()

    def _references(self) -> Any:
        """The Java objects that Python processes refer to."""
        # A Python process that ends leaves its references behind, and they keep their objects in memory.
        server: Any = JavaObject("GATEWAY_SERVER", self._gateway._gateway_client)  # noqa: SLF001 - as PySpark does
        return server.getGateway().getBindings()
