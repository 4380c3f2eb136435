"""An application that copies a topic to another one and to files, in a process that tests can kill."""

import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

from dagkit import Config, Dag, InputPort, OperatorContext, OutputPort, RowOperator, StatelessPartitioner
from dagkit.api.application import StreamingApplication
from dagkit.engine.points import Point
from dagkit.launching import Machine, launch
from dagkit_operators import KafkaMessage, KafkaReader, KafkaSplitter, KafkaWriter, PartWriter
from tests.operators.driver_kills import kill_once

Backend = Literal["reference", "spark"]


class Values(RowOperator):
    """Sends the values of messages. At one value, it kills its process once."""

    kind = "kafka-copying.values/1"
    input = InputPort(KafkaMessage)
    output = OutputPort(str)
    deadly: int = -1
    killed: str = ""
    """A file that does not exist before the process is killed."""

    def process(self, item: KafkaMessage) -> Iterator[str]:
        value = (item.value or b"").decode()
        if value == str(self.deadly):
            kill_once(Path(self.killed))
        yield value


class Copy(StreamingApplication):
    """Copies a topic."""

    address: str
    source: str
    target: str
    out: str
    endless: bool = False
    deadly: int = -1
    killed: str = ""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        splitter = dag.add_operator(
            "splitter",
            KafkaSplitter(
                bootstrap_servers=self.address,
                topics=[self.source],
                range_size=7,
                endless=self.endless,
                interval_millis=5,
            ),
        )
        reader = dag.add_operator("reader", KafkaReader(bootstrap_servers=self.address, batch_size=4, poll_millis=5))
        dag.set_operator_attribute(reader, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        values = dag.add_operator("values", Values(deadly=self.deadly, killed=self.killed))
        writer = dag.add_operator("writer", KafkaWriter(bootstrap_servers=self.address, topic=self.target))
        files = dag.add_operator("files", PartWriter(file_path=self.out))
        splitter >> reader >> values
        dag.add_stream("copied", values.output, writer.input, files.input)


def written_to(out: Path) -> list[int]:
    return sorted(int(line) for path in out.rglob("*") if path.is_file() for line in path.read_text().splitlines())


def copy(home: Path, application: Copy, backend: Backend, steps: Connection, freezes_at: Point | None = None) -> None:
    """Copy what is there, and send each step before the next begins. Freeze at the first step of a kind.

    It takes over from a frozen driver.
    """
    is_new = True

    def probe(point: Point, window_id: int) -> None:
        nonlocal is_new
        steps.send(f"{window_id} {point}")
        if is_new and point is freezes_at:
            is_new = False
            os.kill(os.getpid(), signal.SIGSTOP)

    machine = Machine(backend, cores=2)
    launch(application, until="idle", machine=machine, path=home / "app", probe=probe, take_over=True)
