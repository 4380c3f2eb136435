"""The session that dagkit starts itself."""

import pytest
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_its_java_compiles_once_and_leaves_the_processor_to_the_workers(spark: SparkSession) -> None:
    java = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
    assert "-XX:TieredStopAtLevel=1" in list(java.getRuntimeMXBean().getInputArguments())
