"""Attributes: settings of the platform, on an application, an operator or a port.

Names and defaults are those of Apex. The `standing` of an attribute is its effect in dagkit: an `HONOURED` attribute
means the same as in Apex, a `HINT` is mapped to the nearest feature of Spark, and an `ADVISORY` attribute has a
meaning only on YARN: dagkit accepts it, reports that it has no effect, and never refuses it as unknown.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from annotated_types import Ge

T = TypeVar("T")


class Scope(StrEnum):
    """What an attribute is set on. The values are the prefixes of qualified keys."""

    APPLICATION = "DAGContext"
    OPERATOR = "OperatorContext"
    PORT = "PortContext"


class Standing(StrEnum):
    """The effect of an Apex attribute in dagkit."""

    HONOURED = "honoured"
    HINT = "hint"
    ADVISORY = "advisory"


class Locality(StrEnum):
    """How close to each other the two ends of a stream must run."""

    THREAD_LOCAL = "THREAD_LOCAL"
    CONTAINER_LOCAL = "CONTAINER_LOCAL"
    NODE_LOCAL = "NODE_LOCAL"
    RACK_LOCAL = "RACK_LOCAL"


class ProcessingMode(StrEnum):
    """How often a failure may cause the items of an open window to be processed."""

    AT_LEAST_ONCE = "AT_LEAST_ONCE"
    AT_MOST_ONCE = "AT_MOST_ONCE"
    EXACTLY_ONCE = "EXACTLY_ONCE"


class RecoveryMode(StrEnum):
    """The state from which an operator restarts when its upstream is redeployed."""

    CHECKPOINT = "CHECKPOINT"
    REUSE_INSTANCE = "REUSE_INSTANCE"


class OnPoison(StrEnum):
    """What happens to a record that ends its worker, once the search has found it."""

    STOP = "STOP"
    SET_ASIDE = "SET_ASIDE"


class HttpAuthentication(StrEnum):
    """How the web service of Apex authenticates users. Accepted without effect."""

    ENABLE = "ENABLE"
    DISABLE = "DISABLE"
    FOLLOW_HADOOP_AUTH = "FOLLOW_HADOOP_AUTH"
    FOLLOW_HADOOP_HTTP_AUTH = "FOLLOW_HADOOP_HTTP_AUTH"


class Attribute(Generic[T]):
    """A named setting of the platform: its default, the type of its value, and its effect."""

    name: str
    scope: Scope

    def __init__(self, default: T, holds: Any, meaning: str, standing: Standing = Standing.HONOURED) -> None:
        self.default = default
        self.holds = holds
        """The type of the value. `Instance`: an object named by its class. `Described`: an object given as JSON."""
        self.meaning = meaning
        self.standing = standing

    def __set_name__(self, owner: "type[_Context]", name: str) -> None:
        self.name = name
        self.scope = owner.scope

    @property
    def qualified(self) -> str:
        return f"{self.scope}.{self.name}"

    def __repr__(self) -> str:
        return self.qualified


class Instance:
    """A value that files write as `Class:constructor argument:property=value`, or as several with commas."""

    def __init__(self, of: str, *, many: bool = False) -> None:
        self.of = of
        self.many = many


class Described:
    """A value that files write as a JSON object of the named model."""

    def __init__(self, of: str) -> None:
        self.of = of


class _Context:
    """The base of the three catalogues of attributes."""

    scope: ClassVar[Scope]

    @classmethod
    def attributes(cls) -> dict[str, Attribute[Any]]:
        """The attributes by name, in the order of declaration."""
        return {name: value for name, value in vars(cls).items() if isinstance(value, Attribute)}


_HINT, _ADVISORY = Standing.HINT, Standing.ADVISORY
_INT_MAX = 2**31 - 1
_Count = Annotated[int, Ge(0)]
_Windows = Annotated[int, Ge(1)]


class DagContext(_Context):
    """The attributes of an application."""

    scope = Scope.APPLICATION

    APPLICATION_NAME = Attribute("unknown-application-name", str, "the application's name")
    APPLICATION_PATH = Attribute[str | None](None, str, "the application's folder: ledger, checkpoints, staging")
    STREAMING_WINDOW_SIZE_MILLIS = Attribute(500, _Windows, "length of a streaming window")
    STRING_CODECS = Attribute[Mapping[type, Callable[[str], Any]] | None](
        None, dict, "converters from text, by class, for properties in files"
    )
    HEARTBEAT_INTERVAL_MILLIS = Attribute(1000, _Windows, "period of statistics while the application is idle", _HINT)
    AFFINITY_RULES_SET = Attribute[Any](
        None, Described("AffinityRulesSet"), "which operators run together or apart", _HINT
    )

    ON_POISON = Attribute(
        OnPoison.STOP, OnPoison, "what to do with a record that ends its worker: stop the application, or set it aside"
    )
    RECORD_TIMEOUT_MILLIS = Attribute[int | None](
        None, _Windows, "after how long without progress a worker is ended; none: never"
    )
    HAND_OVER_WORK = Attribute(True, bool, "whether idle slots take over work of busy ones while a window runs")

    CHECKPOINT_WINDOW_COUNT = Attribute(60, _Windows, "windows between two checkpoints: every window is one", _ADVISORY)
    APPLICATION_ID = Attribute[str | None](None, str, "the id of this launch", _ADVISORY)
    METRICS_TRANSPORT = Attribute[Any](None, Instance("MetricsTransport"), "where metrics are sent", _ADVISORY)
    MASTER_MEMORY_MB = Attribute(1024, _Count, "memory of the driver", _ADVISORY)
    THROUGHPUT_CALCULATION_INTERVAL = Attribute(
        10_000, _Windows, "milliseconds over which throughput is averaged", _ADVISORY
    )
    LIBRARY_JARS = Attribute[str | None](None, str, "further files that executors need", _ADVISORY)
    APPLICATION_DOC_LINK = Attribute[str | None](None, str, "a page that documents the application", _ADVISORY)
    APPLICATION_DATA_LINK = Attribute[str | None](None, str, "a page that shows the application's data", _ADVISORY)
    APP_PACKAGE_SOURCE = Attribute[str | None](None, str, "where the application package came from", _ADVISORY)
    DEBUG = Attribute(False, bool, "write more to the logs", _ADVISORY)
    CONTAINER_JVM_OPTIONS = Attribute[str | None](None, str, "JVM flags of containers", _ADVISORY)
    LOGGER_APPENDER = Attribute[str | None](None, str, "a further log appender", _ADVISORY)
    BUFFER_SPOOLING = Attribute(True, bool, "the buffer server may spool to disk", _ADVISORY)
    TUPLE_RECORDING_PART_FILE_SIZE = Attribute(131_072, _Count, "bytes in a part of a recording", _ADVISORY)
    TUPLE_RECORDING_PART_FILE_TIME_MILLIS = Attribute(
        int(dt.timedelta(hours=30).total_seconds() * 1000), _Count, "duration of a part of a recording", _ADVISORY
    )
    GATEWAY_CONNECT_ADDRESS = Attribute[str | None](None, str, "address of the gateway", _ADVISORY)
    GATEWAY_USE_SSL = Attribute(False, bool, "use TLS to the gateway", _ADVISORY)
    GATEWAY_USER_NAME = Attribute[str | None](None, str, "user at the gateway", _ADVISORY)
    GATEWAY_PASSWORD = Attribute[str | None](None, str, "password at the gateway", _ADVISORY)
    PUBSUB_CONNECT_TIMEOUT_MILLIS = Attribute(500, _Count, "time to reach the gateway", _ADVISORY)
    HEARTBEAT_LISTENER_THREAD_COUNT = Attribute(30, _Count, "threads that answer heartbeats", _ADVISORY)
    HEARTBEAT_TIMEOUT_MILLIS = Attribute(30_000, _Count, "silence after which a container counts as dead", _ADVISORY)
    RESOURCE_ALLOCATION_TIMEOUT_MILLIS = Attribute(_INT_MAX, _Count, "time to wait for the resource manager", _ADVISORY)
    STATS_MAX_ALLOWABLE_WINDOWS_LAG = Attribute(1000, _Count, "windows for which statistics are kept", _ADVISORY)
    ENABLE_STATS_RECORDING = Attribute(False, bool, "record statistics", _ADVISORY)
    THROUGHPUT_CALCULATION_MAX_SAMPLES = Attribute(1000, _Count, "samples in an average of throughput", _ADVISORY)
    RPC_LATENCY_COMPENSATION_SAMPLES = Attribute(100, _Count, "samples in an average of call latency", _ADVISORY)
    CONTAINER_OPTS_CONFIGURATOR = Attribute[Any](
        None, Instance("ContainerOptConfigurator"), "computes a container's JVM flags", _ADVISORY
    )
    STRAM_HTTP_AUTHENTICATION = Attribute(
        HttpAuthentication.FOLLOW_HADOOP_AUTH, HttpAuthentication, "authentication of the web service", _ADVISORY
    )
    MAX_CONSECUTIVE_CONTAINER_FAILURES_FOR_BLACKLIST = Attribute(
        _INT_MAX, _Count, "failures before a node is blacklisted", _ADVISORY
    )
    BLACKLISTED_NODE_REMOVAL_TIME_MILLIS = Attribute(
        3_600_000, _Count, "time for which a node stays blacklisted", _ADVISORY
    )
    SSL_CONFIG = Attribute[Any](None, dict, "TLS of the web service", _ADVISORY)
    CONTAINERS_MAX_COUNT = Attribute(_INT_MAX, _Count, "largest number of containers", _ADVISORY)
    FAST_PUBLISHER_SUBSCRIBER = Attribute(False, bool, "the buffer server's fast path", _ADVISORY)


class OperatorContext(_Context):
    """The attributes of an operator. `setup` reads them from the context that it is passed."""

    scope = Scope.OPERATOR

    RECOVERY_ATTEMPTS = Attribute[int | None](None, _Count, "how often a failed window is retried; none: never")
    STATS_LISTENERS = Attribute[Any](
        None, Instance("StatsListener", many=True), "the listeners that get the operator's statistics"
    )
    APPLICATION_WINDOW_COUNT = Attribute(1, _Windows, "streaming windows that the operator sees as one")
    SLIDE_BY_WINDOW_COUNT = Attribute[int | None](
        None, _Windows, "windows by which an application window slides; none: it tumbles"
    )
    CHECKPOINT_WINDOW_COUNT = Attribute(1, _Windows, "only checked: state is saved with every window")
    PROCESSING_MODE = Attribute(
        ProcessingMode.AT_LEAST_ONCE, ProcessingMode, "only checked between operators: every window is exactly once"
    )
    PARTITIONER = Attribute[Any](None, Instance("Partitioner"), "decides the operator's partitions")
    METRICS_AGGREGATOR = Attribute[Any](
        None, Instance("MetricsAggregator"), "computes the operator's metrics from those of its partitions"
    )

    ACTIVATION_WINDOW_ID = Attribute(-1, int, "the window after which the operator starts", _ADVISORY)
    STATELESS = Attribute(False, bool, "the operator has no state to keep", _ADVISORY)
    STORAGE_AGENT = Attribute[Any](None, Instance("StorageAgent"), "where state is kept", _ADVISORY)
    SPIN_MILLIS = Attribute(10, _Count, "longest sleep of an idle operator", _ADVISORY)
    TIMEOUT_WINDOW_COUNT = Attribute(
        120, _Windows, "windows without progress after which it counts as blocked", _ADVISORY
    )
    COUNTERS_AGGREGATOR = Attribute[Any](
        None, Instance("CountersAggregator"), "computes the operator's counters from those of its partitions", _ADVISORY
    )
    MEMORY_MB = Attribute(1024, _Count, "memory of an instance", _ADVISORY)
    VCORES = Attribute(0, _Count, "cores of an instance", _ADVISORY)
    JVM_OPTIONS = Attribute[str | None](None, str, "JVM flags of its container", _ADVISORY)
    LOCALITY_HOST = Attribute[str | None](None, str, "preferred host", _ADVISORY)
    LOCALITY_RACK = Attribute[str | None](None, str, "preferred rack", _ADVISORY)
    AUTO_RECORD = Attribute(False, bool, "record tuples from the start", _ADVISORY)
    METRICS_DIMENSIONS_SCHEME = Attribute[Any](
        None, Instance("DimensionsScheme"), "time buckets and dimensions of metrics", _ADVISORY
    )
    RECOVERY_MODE = Attribute(
        RecoveryMode.CHECKPOINT, RecoveryMode, "what a redeployed instance starts from", _ADVISORY
    )


class PortContext(_Context):
    """The attributes of a port."""

    scope = Scope.PORT

    PARTITION_PARALLEL = Attribute(False, bool, "the operator gets one partition for each partition upstream")
    STREAM_CODEC = Attribute[Any](None, Instance("StreamCodec"), "serializes items and decides their partition")
    TUPLE_CLASS = Attribute[type | None](None, type, "class of the items, for ports that need a schema")
    QUEUE_CAPACITY = Attribute(1024, _Windows, "items that may wait at an input", _HINT)
    UNIFIER_LIMIT = Attribute(_INT_MAX, _Windows, "most inputs of one unifier; more are cascaded", _HINT)
    UNIFIER_SINGLE_FINAL = Attribute(False, bool, "one final unifier for all downstream partitions", _HINT)

    IS_OUTPUT_UNIFIED = Attribute(False, bool, "set by the platform: a unifier follows this output", _ADVISORY)
    BUFFER_MEMORY_MB = Attribute(512, _Count, "buffer memory of an output", _ADVISORY)
    SPIN_MILLIS = Attribute(10, _Count, "sleep between two polls", _ADVISORY)
    AUTO_RECORD = Attribute(False, bool, "record tuples from the start", _ADVISORY)


CONTEXTS: tuple[type[_Context], ...] = (DagContext, OperatorContext, PortContext)

BY_SCOPE: Mapping[Scope, Mapping[str, Attribute[Any]]] = {c.scope: c.attributes() for c in CONTEXTS}


def attribute_names() -> list[str]:
    """The simple names of all attributes, without duplicates."""
    return list(dict.fromkeys(name for catalogue in BY_SCOPE.values() for name in catalogue))
