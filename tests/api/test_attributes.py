"""The catalogue of attributes: names, defaults and standing, written down by hand from Apex's own."""

from typing import Any

import pytest

from dagkit.api.attributes import (
    BY_SCOPE,
    DagContext,
    HttpAuthentication,
    OnPoison,
    OperatorContext,
    PortContext,
    ProcessingMode,
    RecoveryMode,
    Scope,
    Standing,
    attribute_names,
)

INT_MAX = 2147483647
Y, H, N = Standing.HONOURED, Standing.HINT, Standing.ADVISORY

APPLICATION: dict[str, tuple[Any, Standing]] = {
    "APPLICATION_NAME": ("unknown-application-name", Y),
    "APPLICATION_DOC_LINK": (None, N),
    "APPLICATION_DATA_LINK": (None, N),
    "METRICS_TRANSPORT": (None, H),
    "APPLICATION_ID": (None, Y),
    "APP_PACKAGE_SOURCE": (None, N),
    "DEBUG": (False, N),
    "CONTAINER_JVM_OPTIONS": (None, N),
    "LOGGER_APPENDER": (None, N),
    "MASTER_MEMORY_MB": (1024, H),
    "BUFFER_SPOOLING": (True, N),
    "STREAMING_WINDOW_SIZE_MILLIS": (500, Y),
    "CHECKPOINT_WINDOW_COUNT": (60, Y),
    "APPLICATION_PATH": (None, Y),
    "TUPLE_RECORDING_PART_FILE_SIZE": (131072, N),
    "TUPLE_RECORDING_PART_FILE_TIME_MILLIS": (108000000, N),
    "GATEWAY_CONNECT_ADDRESS": (None, N),
    "GATEWAY_USE_SSL": (False, N),
    "GATEWAY_USER_NAME": (None, N),
    "GATEWAY_PASSWORD": (None, N),
    "PUBSUB_CONNECT_TIMEOUT_MILLIS": (500, N),
    "HEARTBEAT_LISTENER_THREAD_COUNT": (30, N),
    "HEARTBEAT_INTERVAL_MILLIS": (1000, H),
    "HEARTBEAT_TIMEOUT_MILLIS": (30000, N),
    "RESOURCE_ALLOCATION_TIMEOUT_MILLIS": (INT_MAX, N),
    "STATS_MAX_ALLOWABLE_WINDOWS_LAG": (1000, N),
    "ENABLE_STATS_RECORDING": (False, N),
    "THROUGHPUT_CALCULATION_INTERVAL": (10000, H),
    "THROUGHPUT_CALCULATION_MAX_SAMPLES": (1000, N),
    "RPC_LATENCY_COMPENSATION_SAMPLES": (100, N),
    "CONTAINER_OPTS_CONFIGURATOR": (None, N),
    "STRAM_HTTP_AUTHENTICATION": (HttpAuthentication.FOLLOW_HADOOP_AUTH, N),
    "STRING_CODECS": (None, Y),
    "MAX_CONSECUTIVE_CONTAINER_FAILURES_FOR_BLACKLIST": (INT_MAX, N),
    "BLACKLISTED_NODE_REMOVAL_TIME_MILLIS": (3600000, N),
    "AFFINITY_RULES_SET": (None, H),
    "LIBRARY_JARS": (None, H),
    "SSL_CONFIG": (None, N),
    # the plan's private ones, which property files set too
    "CONTAINERS_MAX_COUNT": (INT_MAX, N),
    "FAST_PUBLISHER_SUBSCRIBER": (False, N),
    # dagkit's own
    "ON_POISON": (OnPoison.STOP, Y),
    "RECORD_TIMEOUT_MILLIS": (None, Y),
    "HAND_OVER_WORK": (True, Y),
}

OPERATOR: dict[str, tuple[Any, Standing]] = {
    "ACTIVATION_WINDOW_ID": (-1, Y),
    "SPIN_MILLIS": (10, H),
    "RECOVERY_ATTEMPTS": (None, Y),
    "STATS_LISTENERS": (None, Y),
    "STATELESS": (False, Y),
    "MEMORY_MB": (1024, N),
    "VCORES": (0, N),
    "JVM_OPTIONS": (None, N),
    "APPLICATION_WINDOW_COUNT": (1, Y),
    "SLIDE_BY_WINDOW_COUNT": (None, Y),
    "CHECKPOINT_WINDOW_COUNT": (1, Y),
    "LOCALITY_HOST": (None, N),
    "LOCALITY_RACK": (None, N),
    "STORAGE_AGENT": (None, Y),
    "PROCESSING_MODE": (ProcessingMode.AT_LEAST_ONCE, Y),
    "TIMEOUT_WINDOW_COUNT": (120, H),
    "AUTO_RECORD": (False, N),
    "PARTITIONER": (None, Y),
    "COUNTERS_AGGREGATOR": (None, H),
    "METRICS_AGGREGATOR": (None, Y),
    "METRICS_DIMENSIONS_SCHEME": (None, N),
    "RECOVERY_MODE": (RecoveryMode.CHECKPOINT, N),
}

PORT: dict[str, tuple[Any, Standing]] = {
    "QUEUE_CAPACITY": (1024, H),
    "BUFFER_MEMORY_MB": (512, N),
    "SPIN_MILLIS": (10, N),
    "PARTITION_PARALLEL": (False, Y),
    "UNIFIER_LIMIT": (INT_MAX, H),
    "UNIFIER_SINGLE_FINAL": (False, H),
    "AUTO_RECORD": (False, N),
    "IS_OUTPUT_UNIFIED": (False, H),
    "STREAM_CODEC": (None, Y),
    "TUPLE_CLASS": (None, Y),
}


@pytest.mark.parametrize(
    ("scope", "catalogue"),
    [(Scope.APPLICATION, APPLICATION), (Scope.OPERATOR, OPERATOR), (Scope.PORT, PORT)],
    ids=["of applications", "of operators", "of ports"],
)
def test_the_catalogue_is_that_of_apex(scope, catalogue):
    assert {name: (a.default, a.standing) for name, a in BY_SCOPE[scope].items()} == catalogue


def test_an_attribute_knows_its_name_and_who_bears_it():
    assert DagContext.STREAMING_WINDOW_SIZE_MILLIS.qualified == "DAGContext.STREAMING_WINDOW_SIZE_MILLIS"
    assert PortContext.PARTITION_PARALLEL.qualified == "PortContext.PARTITION_PARALLEL"


def test_namesakes_of_two_scopes_are_two_attributes():
    assert OperatorContext.AUTO_RECORD is not PortContext.AUTO_RECORD
    assert OperatorContext.SPIN_MILLIS is not PortContext.SPIN_MILLIS
    assert DagContext.CHECKPOINT_WINDOW_COUNT is not OperatorContext.CHECKPOINT_WINDOW_COUNT


def test_every_simple_name_is_listed_once():
    assert sorted(attribute_names()) == sorted({*APPLICATION, *OPERATOR, *PORT})
