"""On Spark, a worker and the driver are killed at random, and every row is in the table once."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagkit import Dag, InputPort, OutputPort, RowOperator
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.testing import Crash, CrashAfter
from dagkit_operators import Map, SqlWriter
from tests.backends.cast import chained
from tests.engine.cast import Digits, Ranges
from tests.operators.driver_kills import POINTS, kill_once
from tests.operators.sql.sql_cast import Row, TestDatabase

pytestmark = [pytest.mark.spark, pytest.mark.trial]

LOOKS = ((4, 3), (5,), (2, 2), (7,), (1, 1, 1))
EXPECTED = [(number, f"row {number}") for number in range(26)]
NUMBERS = "SELECT number, text FROM numbers ORDER BY number"


class Kills(RowOperator):
    input = InputPort(int)
    output = OutputPort(int)
    at: int
    marker: str

    def process(self, item: int) -> Iterator[int]:
        if item == self.at:
            kill_once(Path(self.marker))
        yield item


@pytest.mark.parametrize("seed", range(5))
def test_workers_and_the_driver_on_spark_are_killed(tmp_path, spark, seed):
    drawn, sqlite = random.Random(seed), TestDatabase(f"sqlite:///{tmp_path}/rows.db")
    at = drawn.randrange(26)

    def draw(dag: Dag, conf: object) -> None:
        kills, rows = Kills(at=at, marker=str(tmp_path / "killed")), Map(lambda number: Row(number, f"row {number}"))
        write = SqlWriter(table="numbers", record_type=Row, **sqlite.settings)
        chained(dag, ranges=Ranges(looks=LOOKS), digits=Digits(), kills=kills, rows=rows, write=write)

    machine, path = Machine(spark=spark), tmp_path / "app"
    crash = CrashAfter(drawn.choice(POINTS), drawn.randint(1, 4))
    try:
        launch(draw, until="idle", machine=machine, path=path, probe=crash)
    except Crash:
        launch(draw, until="idle", machine=machine, path=path)
    assert (tmp_path / "killed").exists()
    assert sqlite.rows(NUMBERS) == EXPECTED
    assert list(verify(Ledger.open(path)).faults) == []
