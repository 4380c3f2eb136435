"""The catalogue of attributes: names, defaults and standing, written down by hand from Apex's own."""

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

MAX = 2147483647
Y, H, N = Standing.HONOURED, Standing.HINT, Standing.ADVISORY


def _catalogue(**entries):
    """Names with a default and a standing; where none has a default, the names of each standing."""
    without = {name: (None, standing) for standing in (Y, H, N) for name in entries.pop(standing.name, "").split()}
    return {**entries, **without}


APPLICATION = _catalogue(
    HONOURED="APPLICATION_ID APPLICATION_PATH STRING_CODECS RECORD_TIMEOUT_MILLIS",
    HINT="METRICS_TRANSPORT AFFINITY_RULES_SET LIBRARY_JARS",
    ADVISORY="APPLICATION_DOC_LINK APPLICATION_DATA_LINK APP_PACKAGE_SOURCE CONTAINER_JVM_OPTIONS LOGGER_APPENDER "
    "GATEWAY_CONNECT_ADDRESS GATEWAY_USER_NAME GATEWAY_PASSWORD CONTAINER_OPTS_CONFIGURATOR SSL_CONFIG",
    APPLICATION_NAME=("unknown-application-name", Y),
    DEBUG=(False, N),
    MASTER_MEMORY_MB=(1024, H),
    BUFFER_SPOOLING=(True, N),
    STREAMING_WINDOW_SIZE_MILLIS=(500, Y),
    CHECKPOINT_WINDOW_COUNT=(60, Y),
    TUPLE_RECORDING_PART_FILE_SIZE=(131072, N),
    TUPLE_RECORDING_PART_FILE_TIME_MILLIS=(108000000, N),
    GATEWAY_USE_SSL=(False, N),
    PUBSUB_CONNECT_TIMEOUT_MILLIS=(500, N),
    HEARTBEAT_LISTENER_THREAD_COUNT=(30, N),
    HEARTBEAT_INTERVAL_MILLIS=(1000, H),
    HEARTBEAT_TIMEOUT_MILLIS=(30000, N),
    RESOURCE_ALLOCATION_TIMEOUT_MILLIS=(MAX, N),
    STATS_MAX_ALLOWABLE_WINDOWS_LAG=(1000, N),
    ENABLE_STATS_RECORDING=(False, N),
    THROUGHPUT_CALCULATION_INTERVAL=(10000, H),
    THROUGHPUT_CALCULATION_MAX_SAMPLES=(1000, N),
    RPC_LATENCY_COMPENSATION_SAMPLES=(100, N),
    STRAM_HTTP_AUTHENTICATION=(HttpAuthentication.FOLLOW_HADOOP_AUTH, N),
    MAX_CONSECUTIVE_CONTAINER_FAILURES_FOR_BLACKLIST=(MAX, N),
    BLACKLISTED_NODE_REMOVAL_TIME_MILLIS=(3600000, N),
    # the plan's private ones, which property files set too
    CONTAINERS_MAX_COUNT=(MAX, N),
    FAST_PUBLISHER_SUBSCRIBER=(False, N),
    # dagkit's own, beside RECORD_TIMEOUT_MILLIS
    ON_POISON=(OnPoison.STOP, Y),
    HAND_OVER_WORK=(True, Y),
)
OPERATOR = _catalogue(
    HONOURED="RECOVERY_ATTEMPTS STATS_LISTENERS SLIDE_BY_WINDOW_COUNT STORAGE_AGENT PARTITIONER METRICS_AGGREGATOR",
    HINT="COUNTERS_AGGREGATOR",
    ADVISORY="JVM_OPTIONS LOCALITY_HOST LOCALITY_RACK METRICS_DIMENSIONS_SCHEME",
    ACTIVATION_WINDOW_ID=(-1, Y),
    SPIN_MILLIS=(10, H),
    STATELESS=(False, Y),
    MEMORY_MB=(1024, N),
    VCORES=(0, N),
    APPLICATION_WINDOW_COUNT=(1, Y),
    CHECKPOINT_WINDOW_COUNT=(1, Y),
    PROCESSING_MODE=(ProcessingMode.AT_LEAST_ONCE, Y),
    TIMEOUT_WINDOW_COUNT=(120, H),
    AUTO_RECORD=(False, N),
    RECOVERY_MODE=(RecoveryMode.CHECKPOINT, N),
)
PORT = _catalogue(
    HONOURED="STREAM_CODEC TUPLE_CLASS",
    QUEUE_CAPACITY=(1024, H),
    BUFFER_MEMORY_MB=(512, N),
    SPIN_MILLIS=(10, N),
    PARTITION_PARALLEL=(False, Y),
    UNIFIER_LIMIT=(MAX, H),
    UNIFIER_SINGLE_FINAL=(False, H),
    AUTO_RECORD=(False, N),
    IS_OUTPUT_UNIFIED=(False, H),
)


@pytest.mark.parametrize(
    ("scope", "catalogue"), [(Scope.APPLICATION, APPLICATION), (Scope.OPERATOR, OPERATOR), (Scope.PORT, PORT)]
)
def test_the_catalogue_is_that_of_apex(scope, catalogue):
    assert {name: (a.default, a.standing) for name, a in BY_SCOPE[scope].items()} == catalogue


def test_every_simple_name_is_listed_once_and_an_attribute_is_known_by_its_scope_too():
    assert sorted(attribute_names()) == sorted({*APPLICATION, *OPERATOR, *PORT})
    assert DagContext.STREAMING_WINDOW_SIZE_MILLIS.qualified == "DAGContext.STREAMING_WINDOW_SIZE_MILLIS"
    assert PortContext.PARTITION_PARALLEL.qualified == "PortContext.PARTITION_PARALLEL"
    assert DagContext.CHECKPOINT_WINDOW_COUNT is not OperatorContext.CHECKPOINT_WINDOW_COUNT
