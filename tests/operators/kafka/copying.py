"""An application that copies a topic to another one and to files, in a process that tests can kill."""

import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

from dagkit import Config, Dag, InputPort, OperatorContext, OutputPort, RowOperator, StatelessPartitioner
from dagkit.api.application import StreamingApplication
from dagkit.engine.program.points import Point
from dagkit.launching import Machine, launch
from dagkit_operators import KafkaMessage, KafkaReader, KafkaSplitter, KafkaWriter, PartWriter
from tests.operators.driver_kills import kill_once
from tests.operators.ways import lines_in, placed

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
    address: str
    source: str
    target: str
    out: str
    endless: bool = False
    deadly: int = -1
    killed: str = ""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        at = {"bootstrap_servers": self.address}
        ranges = {"range_size": 7, "endless": self.endless, "interval_millis": 5}
        copies = placed(
            dag,
            splitter=KafkaSplitter(**at, topics=[self.source], **ranges),
            reader=KafkaReader(**at, batch_size=4, poll_millis=5),
            values=Values(deadly=self.deadly, killed=self.killed),
            writer=KafkaWriter(**at, topic=self.target),
        )
        dag.set_operator_attribute(copies["reader"], OperatorContext.PARTITIONER, StatelessPartitioner(2))
        copies["values"] >> dag.add_operator("files", PartWriter(file_path=self.out))


def written_to(out: Path) -> list[int]:
    return sorted(map(int, lines_in(out)))


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
