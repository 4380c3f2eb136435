"""Operators and objects that keys are tried on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dagkit.api.application import Module, StreamingApplication
from dagkit.api.configuration import Config, Entry, Origin, Source
from dagkit.api.dag import Dag
from dagkit.api.metrics import MetricsAggregator
from dagkit.api.operators import InputOperator, Operator
from dagkit.api.ports import InputPort, OutputPort
from dagkit.api.stats import BatchedOperatorStats, Response, StatsListener
from dagkit.api.streams import StreamCodec
from dagkit.errors import Where


class Colour(Enum):
    RED = "r"
    GREEN = "g"


class Scanner(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    files: tuple[str, ...] = ()
    file_pattern_regular_exp: str = ".*"
    scan_interval_millis: int = 5000
    recursive: bool = True


class SlowScanner(Scanner):
    patience: int = 1


@dataclass(frozen=True)
class Span:
    start: int = 0
    end: int = 10


class Bean:
    """An object of the grammar Class:argument:property=value, as Apex tests it."""

    def __init__(self, argument: str | None = None) -> None:
        self.constructed = argument
        self.int_val = -1
        self.string_val = "unset"


class Listener(StatsListener):
    def __init__(self, name: str = "") -> None:
        self.name = name
        self.threshold = 0

    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        return Response()


class Largest(MetricsAggregator):
    def aggregate(self, window_id: int, partitions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        return max(partitions, key=lambda metrics: max(metrics.values()))


class Codec(StreamCodec[Any]):
    def to_bytes(self, item: Any) -> bytes:
        return b""

    def from_bytes(self, data: bytes) -> Any:
        return data

    def get_partition(self, item: Any) -> int:
        return 0


class Point:
    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

    __hash__ = None


def point(text: str) -> Point:
    x, y = text.split("/")
    return Point(int(x), int(y))


def long_enough(text: str) -> bool:
    return len(text) > 3


class Feed(InputOperator):
    output = OutputPort[str]()


class Reader(Operator):
    """A property of every form."""

    lines = InputPort[str]()
    side = InputPort[str](optional=True)
    output = OutputPort[str]()
    errors = OutputPort[str]()

    block_size: int = 5
    ratio: float = 0.5
    enabled: bool = False
    text: str = ""
    password: str = ""
    scanner: Scanner = Scanner()
    spare: Scanner | None = None
    span: Span = Span()
    tags: dict[str, int] = Field(default={})
    scanners: dict[str, Scanner] = Field(default={})
    names: tuple[str, ...] = ()
    pair: tuple[type, str] = (str, "")
    numbers: list[int] = Field(default=[])
    distinct: frozenset[str] = frozenset()
    keep: Callable[[str], bool] | None = None
    payload: type | None = None
    colour: Colour = Colour.RED
    path: Path = Path()
    level: Literal[1, 2] = 1
    listeners: Sequence[StatsListener] = ()
    listener: StatsListener | None = None
    point: Point | None = None
    either: int | Scanner = 0
    extras: Mapping[str, Any] = {}


class Stubborn(Operator):
    def __init__(self, argument: str, /) -> None:
        super().__init__()


class Inner(Module):
    depth: int = 1
    lines = InputPort[str]()

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        dag.expose(self.lines, dag.add_operator("reader", Reader()).lines)


class Pipeline(StreamingApplication):
    testprop1: int = 0
    testprop2: int = 0
    testprop3: int = 0
    inncls: Span = Span()
    scanner: Scanner = Scanner()

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        feed, reader = dag.add_operator("feed", Feed()), dag.add_operator("reader", Reader())
        dag.add_stream("lines", feed.output, reader.lines)


def config(values: Mapping[str, Any], source: Source = Source.FILE) -> Config:
    """The keys of one file, each on a line of its own."""
    return Config(entries(values, source))


def entries(values: Mapping[str, Any], source: Source = Source.FILE) -> list[Entry]:
    lines = enumerate(values.items(), start=1)
    return [Entry(key, value, Origin(source, Where("conf.xml", line), key)) for line, (key, value) in lines]
