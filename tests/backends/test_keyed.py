"""Keyed operators, whose keys and unifiers depend on their properties, do on Spark what they do in the reference."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dagkit.launching import Machine
from tests.operators.keyed.test_partitions import JOINED, WAYS, result


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("way", ["keyed partitions", "mirrored partitions"])
def test_the_result_is_that_of_the_reference(
    way: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined, once = result(tmp_path / "spark", WAYS[way], monkeypatch, Machine(spark=spark))
    assert joined == repr(JOINED)
    assert once == result(tmp_path / "reference", WAYS[way], monkeypatch, Machine("reference"))[1]
