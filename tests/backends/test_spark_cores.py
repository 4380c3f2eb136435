"""How many slots run at once is known of any session, without a job."""

import os
from collections.abc import Callable

from dagkit.backends.spark.window.cores import CoresOf, cores_of, most_cores
from dagkit.engine.worker.protocol import Cores
from tests.cases import cases

DYNAMIC = {"dynamicAllocation_enabled": "true", "executor_cores": "4"}
MOST = "dynamicAllocation_maxExecutors"
HERE = os.cpu_count() or 1


def settings_of(**values: str) -> Callable[[str], str]:
    return lambda name: {f"spark.{key.replace('_', '.')}": value for key, value in values.items()}.get(name, "")


@cases(
    "settings, most",
    ("nothing is set", {}, None),
    ("so many executors", {"executor_instances": "3", "executor_cores": "4"}, 12),
    ("standalone, with a limit", {"cores_max": "7", "executor_cores": "4"}, 4),
    ("as many as may be allocated", {**DYNAMIC, MOST: "50"}, 200),
    ("allocated without a limit", {"dynamicAllocation_enabled": "true"}, None),
    ("a task has its cores on one executor", {"executor_instances": "3", "executor_cores": "5", "task_cpus": "2"}, 6),
    ("on each of those that a limit allows, too", {"cores_max": "10", "executor_cores": "5", "task_cpus": "2"}, 4),
    ("a limit for tasks of several cores", {"cores_max": "7", "task_cpus": "2"}, 3),
    ("a limit of what is not allocated", {MOST: "50"}, None),
)
def test_what_a_cluster_can_grow_to_is_in_its_settings(settings, most):
    assert most_cores(settings_of(**settings)) == most


REQUESTED = {"default_parallelism": "50"}
FIXED = {"master": "yarn", "executor_instances": "3", "executor_cores": "4"}
ALLOCATED = {"master": "yarn", **DYNAMIC}


@cases(
    "settings, counted, cores",
    ("a request makes no cores", {"master": "local[2]", **REQUESTED}, None, Cores(2, 2)),
    ("where tasks may fail, too", {"master": "local[2, 4]", **REQUESTED}, None, Cores(2, 2)),
    ("one thread", {"master": "local", **REQUESTED}, None, Cores(1, 1)),
    ("all threads there are", {"master": "local[*]"}, 8, Cores(8, 8)),
    ("all threads, though more were requested", {"master": "local[*]", **REQUESTED}, None, Cores(HERE, HERE)),
    ("two cores for a task", {"master": "local[4]", "task_cpus": "2"}, 4, Cores(2, 2)),
    ("no executors", {**FIXED, "master": "local[2]"}, 2, Cores(2, 2)),
    ("executors that are still to come", FIXED, 8, Cores(8, 12)),
    ("what the settings say, and no request", {**FIXED, **REQUESTED}, None, Cores(12, 12)),
    ("three cores for a task", {**FIXED, "task_cpus": "3"}, 12, Cores(3, 3)),
    ("nothing but a request to go by", {**ALLOCATED, **REQUESTED}, None, Cores(50, 100)),
    ("twice as many, where nothing limits the executors", ALLOCATED, 8, Cores(8, 16)),
    ("a request beyond what there can be", {**ALLOCATED, **REQUESTED, MOST: "5"}, None, Cores(20, 20)),
    ("nothing is set", {"master": "spark://there:7077"}, 6, Cores(6, 6)),
)
def test_as_many_tasks_as_run_at_once_are_counted(settings, counted, cores):
    assert cores_of(settings_of(**settings), counted) == cores


def test_a_session_knows_its_cores_behind_connect_too_and_takes_no_request_for_cores(session):
    assert CoresOf(session).count() == Cores(2, 2)
    name = "spark.sql.leafNodeDefaultParallelism"
    session.conf.set(name, "50")
    try:
        assert CoresOf(session).count() == Cores(2, 2)
    finally:
        session.conf.unset(name)
