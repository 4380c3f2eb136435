"""An application takes over a folder from a real query of Structured Streaming: each line is read once."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dagkit import Config, Dag
from dagkit.api.running import Until
from dagkit.compiler import compile_application
from dagkit.engine.program.points import Point
from dagkit.errors import RunFailure
from dagkit.launching import Machine, launch_compiled
from dagkit.ledger import Ledger
from dagkit.runs.inventory.adoption import Adoption, Doubt, adopt
from dagkit.runs.inventory.spark_checkpoint import files_read
from dagkit.testing import Crash, CrashAfter
from dagkit_operators import FileSplitterInput, LineReader, PartWriter
from tests.backends.cast import chained, lines_in
from tests.backends.places import crashes
from tests.old_files import aged

pytestmark = pytest.mark.spark

COMPACTED = 12
"""Micro-batches: after the tenth, Spark writes a compact file to the log of its source."""


class HandOver:
    """A folder that a query of Spark reads first, and an application afterwards."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark, self.home, self.lines = spark, home, set[str]()
        (home / "in é %+").mkdir()

    def write(self, *names: str) -> None:
        for name in names:
            lines = {f"{name} {number}" for number in range(3)}
            (path := self.home / "in é %+" / name).write_text("".join(f"{line}\n" for line in sorted(lines)))
            aged(path)
            self.lines |= lines

    def query(self) -> None:
        """Read what is there with Spark, a file in each micro-batch, and stop."""
        lines = self.spark.readStream.option("maxFilesPerTrigger", "1").text(str(self.home / "in é %+"))
        query = lines.writeStream.format("parquet").option("path", str(self.home / "spark"))
        query = query.option("checkpointLocation", str(self.home / "checkpoint")).trigger(availableNow=True)
        query.start().awaitTermination()

    def adopt(self, in_flight: bool | None = None) -> Adoption:
        read = files_read(str(self.home / "checkpoint"), None, in_flight_is_read=bool(in_flight))
        return adopt(self._compiled(), Ledger.create(str(self.home / "app")), "Found", read, Doubt(in_flight))

    def launch(self, probe: CrashAfter | None = None) -> None:
        machine = Machine("reference")
        launch_compiled(self._compiled(), machine, until=Until.ONCE, path=self.home / "app", durable=False, probe=probe)

    def _compiled(self):
        def copy(dag: Dag, conf: Config) -> None:
            found = FileSplitterInput(scanner={"files": [str(self.home / "in é %+")]})
            chained(dag, Found=found, Reader=LineReader(), Writer=PartWriter(file_path=str(self.home / "out")))

        return compile_application(copy)

    @property
    def by_spark(self) -> list[str]:
        return sorted(row.value for row in self.spark.read.parquet(str(self.home / "spark")).collect())

    @property
    def by_dagkit(self) -> list[str]:
        return lines_in(self.home / "out")


@pytest.fixture
def hand_over(spark, tmp_path):
    return HandOver(spark, tmp_path)


def test_each_line_is_in_one_of_both_outputs(hand_over):
    hand_over.write(*(f"{number:02} ü+#?%.txt" for number in range(COMPACTED)))
    hand_over.query()
    assert (hand_over.home / "checkpoint/sources/0/9.compact").exists()
    hand_over.write("a.txt", "b.txt")
    assert len(hand_over.adopt().adopted) == COMPACTED
    assert hand_over.adopt().is_repeated
    hand_over.launch()
    hand_over.write("c.txt")
    hand_over.launch()
    assert sorted(hand_over.by_spark + hand_over.by_dagkit) == sorted(hand_over.lines)
    assert len(hand_over.by_dagkit) == 9


@pytest.mark.parametrize("point", crashes(Point, in_gate=[Point.APPENDED]))
def test_a_launch_that_crashes_after_the_adoption_is_repeated(hand_over, point):
    hand_over.write("a.txt")
    hand_over.query()
    hand_over.adopt()
    hand_over.write("b.txt")
    try:
        hand_over.launch(CrashAfter(point))
    except Crash:
        hand_over.launch()
    assert sorted(hand_over.by_spark + hand_over.by_dagkit) == sorted(hand_over.lines)


def test_a_query_that_did_not_end_its_last_micro_batch_is_ended_or_decided(hand_over):
    hand_over.write("a.txt")
    hand_over.query()
    hand_over.write("b.txt")
    hand_over.query()
    for name in ("1", ".1.crc"):
        (hand_over.home / "checkpoint/commits" / name).unlink()  # as if Spark had been killed before it noted the end
    with pytest.raises(RunFailure, match="micro-batch 1 of the query has not ended"):
        hand_over.adopt()
    assert len(hand_over.adopt(in_flight=True).adopted) == 2  # the sink holds its rows
    hand_over.query()  # the query ends it, and its file sink skips what it holds
    assert len(hand_over.adopt().adopted) == 2
    hand_over.write("c.txt")
    hand_over.launch()
    assert sorted(hand_over.by_spark + hand_over.by_dagkit) == sorted(hand_over.lines)
