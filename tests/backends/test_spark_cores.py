"""How many slots run at once is known of any session, without a job."""

import pytest
from pyspark.sql import SparkSession

from dagkit.backends.spark.cores import NO_LIMIT, CoresOf, most_cores
from dagkit.engine.assignment import Cores


@pytest.mark.slow
@pytest.mark.spark
def test_a_session_knows_its_cores_behind_connect_too(session: SparkSession) -> None:
    assert CoresOf(session).count() == Cores(2, 2)


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        pytest.param({}, None, id="nobody says"),
        pytest.param({"spark.executor.instances": "3", "spark.executor.cores": "4"}, 12, id="so many executors"),
        pytest.param({"spark.cores.max": "7", "spark.executor.cores": "4"}, 7, id="standalone, with a limit"),
        pytest.param(
            {
                "spark.dynamicAllocation.enabled": "true",
                "spark.dynamicAllocation.maxExecutors": "50",
                "spark.executor.cores": "4",
            },
            200,
            id="as many as may be allocated",
        ),
        pytest.param({"spark.dynamicAllocation.enabled": "true"}, NO_LIMIT, id="allocated without a limit"),
        pytest.param({"spark.dynamicAllocation.maxExecutors": "50"}, None, id="a limit of what is not allocated"),
    ],
)
def test_what_a_cluster_can_grow_to_is_in_its_settings(settings: dict[str, str], most: int | None) -> None:
    assert most_cores(lambda name: settings.get(name, "")) == most
