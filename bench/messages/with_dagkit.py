"""dagkit: from topic to topic, with columns only and with a function of each message, on Spark."""

import os
import signal
import threading
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import SparkSession

from bench.ingesting.sizes import cores
from bench.messages.task import task_in, until_stopped, use_one_core
from dagkit import Config, Dag, DagContext, PortContext, StreamingApplication
from dagkit.backends.spark import local_session
from dagkit.launching import launch
from dagkit_operators import KafkaMessage, KafkaReader, KafkaSplitter, KafkaWriter, Map


def passed(content: Any) -> Any:
    """The function that is called for each message."""
    return content


class Copy(StreamingApplication):
    """Copies a topic."""

    task: Any
    folder: Path
    calls: Literal["nothing", "with contents", "with messages"]
    """Whether a function is called for each message, and with what."""
    interval_millis: int = 100
    """The time between two looks for new messages."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        at = {"bootstrap_servers": self.task.address}
        splitter = dag.add_operator(
            "Split", KafkaSplitter(topics=(self.task.source,), interval_millis=self.interval_millis, **at)
        )
        reader = dag.add_operator("Read", KafkaReader(min_readers=cores(), **at))
        outlet: Any = reader.messages
        if self.calls != "nothing":
            on = "value" if self.calls == "with contents" else None
            function: Map[KafkaMessage, KafkaMessage] = dag.add_operator("Pass", Map(passed, on=on))
            dag.set_input_port_attribute(function.input, PortContext.PARTITION_PARALLEL, True)
            dag.add_stream("read", outlet, function.input)
            outlet = function.output
        writer: KafkaWriter[Any] = dag.add_operator("Write", KafkaWriter(topic=self.task.target, **at))
        dag.set_input_port_attribute(writer.input, PortContext.PARTITION_PARALLEL, True)
        dag.set_attribute(DagContext.APPLICATION_PATH, str(self.folder / "application"))
        dag.add_stream("ranges", splitter.ranges, reader.ranges)
        dag.add_stream("messages", outlet, writer.input)


@cache
def _session() -> SparkSession:
    return local_session()


def _copy(task: Path, folder: Path, calls: Literal["nothing", "with contents", "with messages"]) -> None:
    launch(Copy(task=task_in(task), folder=folder, calls=calls), spark=_session(), until="once")


def batch(task: Path, folder: Path) -> None:
    """Columns of messages, without a call for each."""
    _copy(task, folder, "nothing")


def record(task: Path, folder: Path) -> None:
    """A function of the content of each message."""
    _copy(task, folder, "with contents")


def objects(task: Path, folder: Path) -> None:
    """A function of each message as an object."""
    _copy(task, folder, "with messages")


def objects_on_one_core(task: Path, folder: Path) -> None:
    """The same on one core."""
    use_one_core()
    objects(task, folder)


def running(task: Path, folder: Path) -> None:
    """Copy what arrives, until the benchmark asks to stop."""
    session = _session()

    def stop() -> None:
        until_stopped(folder)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop, daemon=True).start()
    application = Copy(task=task_in(task), folder=folder, calls="with contents", interval_millis=10)
    launch(application, spark=session, until="stopped")
