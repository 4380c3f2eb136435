"""Topics of a real broker, read on every backend: each message once, wherever a run ends."""

from pathlib import Path

import pytest

from dagkit import Config, Dag, OperatorContext, StatelessPartitioner
from dagkit.api.application import StreamingApplication
from dagkit.engine.points import Point
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.testing import Crash, CrashAfter
from dagkit_operators import KafkaMessage, KafkaReader, KafkaSplitter, PartWriter
from tests.backends.places import SPARK_IN_TRIALS

pytestmark = pytest.mark.slow

backends = pytest.mark.parametrize("backend", ["reference", SPARK_IN_TRIALS])


def line(message: KafkaMessage) -> str:
    return f"{message.partition} {message.offset} {(message.value or b'').decode()}"


class TopicToFiles(StreamingApplication):
    """Writes the messages of a topic to files."""

    address: str
    topic: str
    out: str
    endless: bool = False

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        splitter = dag.add_operator(
            "splitter",
            KafkaSplitter(bootstrap_servers=self.address, topics=[self.topic], range_size=50, endless=self.endless),
        )
        reader = dag.add_operator("reader", KafkaReader(bootstrap_servers=self.address, parse=line))
        dag.set_operator_attribute(reader, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        splitter >> reader >> dag.add_operator("writer", PartWriter(file_path=self.out, format=str))


def lines_in(folder: Path) -> list[str]:
    return sorted(text for path in folder.rglob("*") if path.is_file() for text in path.read_text().splitlines())


@backends
@pytest.mark.parametrize("endless", [False, True], ids=["ranges", "without an end"])
def test_every_message_is_in_the_files_once_after_crashes(kafka, tmp_path, backend, endless, request):
    session = request.getfixturevalue("spark") if backend == "spark" else None
    machine, topic = Machine(backend=backend, spark=session), kafka.topic(3)
    application = TopicToFiles(address=kafka.address, topic=topic, out=str(tmp_path / "out"), endless=endless)
    for point in (Point.RUNNING, Point.STAGED, Point.APPENDED):
        for partition in range(3):
            kafka.produce(topic, [point] * 100, partition)
        with pytest.raises(Crash):
            launch(application, until="idle", machine=machine, path=tmp_path / "app", probe=CrashAfter(point))
    launch(application, until="idle", machine=machine, path=tmp_path / "app")
    assert lines_in(tmp_path / "out") == sorted(
        f"{partition} {offset} {point}"
        for partition in range(3)
        for offset, point in enumerate(["running"] * 100 + ["staged"] * 100 + ["appended"] * 100)
    )
    if not endless:
        assert verify(Ledger.open(str(tmp_path / "app"))).is_complete
