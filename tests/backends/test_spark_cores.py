"""How many slots run at once is known of any session, without a job."""

import os

import pytest

from dagkit.backends.spark.cores import CoresOf, cores_of, most_cores
from dagkit.engine.worker.protocol import Cores


@pytest.mark.slow
@pytest.mark.spark
def test_a_session_knows_its_cores_behind_connect_too(session):
    assert CoresOf(session).count() == Cores(2, 2)


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        pytest.param({}, None, id="nothing is set"),
        pytest.param({"spark.executor.instances": "3", "spark.executor.cores": "4"}, 12, id="so many executors"),
        pytest.param({"spark.cores.max": "7", "spark.executor.cores": "4"}, 4, id="standalone, with a limit"),
        pytest.param(
            {
                "spark.dynamicAllocation.enabled": "true",
                "spark.dynamicAllocation.maxExecutors": "50",
                "spark.executor.cores": "4",
            },
            200,
            id="as many as may be allocated",
        ),
        pytest.param({"spark.dynamicAllocation.enabled": "true"}, None, id="allocated without a limit"),
        pytest.param(
            {"spark.executor.instances": "3", "spark.executor.cores": "5", "spark.task.cpus": "2"},
            6,
            id="a task has its cores on one executor",
        ),
        pytest.param(
            {"spark.cores.max": "10", "spark.executor.cores": "5", "spark.task.cpus": "2"},
            4,
            id="on each of those that a limit allows, too",
        ),
        pytest.param({"spark.cores.max": "7", "spark.task.cpus": "2"}, 3, id="a limit for tasks of several cores"),
        pytest.param({"spark.dynamicAllocation.maxExecutors": "50"}, None, id="a limit of what is not allocated"),
    ],
)
def test_what_a_cluster_can_grow_to_is_in_its_settings(settings, most):
    assert most_cores(lambda name: settings.get(name, "")) == most


REQUESTED = {"spark.default.parallelism": "50"}
FIXED = {"spark.master": "yarn", "spark.executor.instances": "3", "spark.executor.cores": "4"}
ALLOCATED = {"spark.master": "yarn", "spark.dynamicAllocation.enabled": "true", "spark.executor.cores": "4"}


@pytest.mark.parametrize(
    ("settings", "counted", "cores"),
    [
        pytest.param({"spark.master": "local[2]", **REQUESTED}, None, Cores(2, 2), id="a request makes no cores"),
        pytest.param({"spark.master": "local[2, 4]", **REQUESTED}, None, Cores(2, 2), id="where tasks may fail, too"),
        pytest.param({"spark.master": "local", **REQUESTED}, None, Cores(1, 1), id="one thread"),
        pytest.param({"spark.master": "local[*]"}, 8, Cores(8, 8), id="all threads there are"),
        pytest.param({"spark.master": "local[4]", "spark.task.cpus": "2"}, 4, Cores(2, 2), id="two cores for a task"),
        pytest.param({**FIXED, "spark.master": "local[2]"}, 2, Cores(2, 2), id="no executors"),
        pytest.param(FIXED, 8, Cores(8, 12), id="executors that are still to come"),
        pytest.param({**FIXED, **REQUESTED}, None, Cores(12, 12), id="what the settings say, and no request"),
        pytest.param({**FIXED, "spark.task.cpus": "3"}, 12, Cores(3, 3), id="three cores for a task"),
        pytest.param({**ALLOCATED, **REQUESTED}, None, Cores(50, 100), id="nothing but a request to go by"),
        pytest.param(ALLOCATED, 8, Cores(8, 16), id="twice as many, where nothing limits the executors"),
        pytest.param(
            {**ALLOCATED, **REQUESTED, "spark.dynamicAllocation.maxExecutors": "5"},
            None,
            Cores(20, 20),
            id="a request beyond what there can be",
        ),
        pytest.param({"spark.master": "spark://there:7077"}, 6, Cores(6, 6), id="nothing is set"),
    ],
)
def test_as_many_tasks_as_run_at_once_are_counted(settings, counted, cores):
    assert cores_of(lambda name: settings.get(name, ""), counted) == cores


def test_all_threads_of_a_machine_are_known_though_more_were_requested():
    settings = {"spark.master": "local[*]", **REQUESTED}
    assert cores_of(lambda name: settings.get(name, ""), None) == Cores(os.cpu_count() or 1, os.cpu_count() or 1)


@pytest.mark.slow
@pytest.mark.spark
def test_a_request_for_tasks_is_not_taken_for_cores(session):
    name = "spark.sql.leafNodeDefaultParallelism"
    session.conf.set(name, "50")
    try:
        assert CoresOf(session).count() == Cores(2, 2)
    finally:
        session.conf.unset(name)
