"""On Spark, a record that ends its Python worker is found by halves, and set aside; the rest is processed once."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dagkit.engine.history.history import history
from dagkit.launching import launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from tests.engine.poison_cast import ON_POISON, TIMEOUT, Way, poisoned

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.mark.parametrize(("way", "count", "words"), [("signal", 10_000, "Segmentation fault"), ("loop", 4, "Timeout")])
def test_a_record_that_ends_its_worker_is_set_aside(
    way: Way, count: int, words: str, spark: SparkSession, tmp_path: Path
) -> None:
    poison = count // 2 + 1
    conf = {ON_POISON: "SET_ASIDE", **({TIMEOUT: 1000} if way == "loop" else {})}
    launch(poisoned(((count // 2, count // 2),), poison, way=way), conf, spark=spark, until="once", path=tmp_path)
    ledger = Ledger.open(tmp_path)
    last = list(history(ledger))[-1].checkpoint
    collected: Any = last.state["collect"][0]["arrived"]
    assert sorted(collected) == [number for number in range(count) if number != poison]
    (letter,) = last.aside
    assert (letter.item.start, letter.item.end) == (poison, poison + 1)
    assert words in letter.reason
    assert list(verify(ledger).faults) == []
