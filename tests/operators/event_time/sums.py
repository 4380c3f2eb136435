"""An application that reads files, and sums their records in windows of event time, twice."""

from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

from dagkit import InputPort, Operator, OperatorContext, State, StatelessPartitioner
from dagkit_operators import (
    AggregateByTime,
    EventTime,
    FileSplitterInput,
    LineReader,
    Map,
    TumblingWindows,
    WindowResult,
)
from tests.old_files import old_file
from tests.operators.ways import placed

START = datetime(2024, 1, 1, tzinfo=UTC)


class Results(Operator):
    """Keeps results in a form that can be saved."""

    kind = "event-time.results/1"
    results = InputPort[WindowResult[Any, Any]]()
    received = State[list[tuple[str, int, int, int]]](list)

    def process(self, item: WindowResult[Any, Any]) -> None:
        start, end = (int((each - START).total_seconds()) for each in (item.start, item.end))
        self.received.append((item.key, start, end, item.result))


class Late(Operator):
    kind = "event-time.late/1"
    items = InputPort[Any]()
    received = State[list[Any]](list)

    def process(self, item: Any) -> None:
        self.received.append(item)


def sums(home, partitions=2, **given):
    of_parts = dict(zip(("time", "key", "of"), map(itemgetter, range(3)), strict=True))
    of_results = {
        "time": lambda result: result.event_time,
        "key": lambda result: "all",
        "of": lambda result: result.result,
    }
    operators = {
        "find": FileSplitterInput(scanner={"files": [str(home / "in")]}, block_size=64),
        "read": LineReader(),
        "parse": Map(lambda line: (*line.split()[:2], int(line.split()[2]))),
        "time": EventTime(time=itemgetter(0)),
        "aggregate": AggregateByTime(**of_parts, windows=TumblingWindows(millis=10_000), **given),
        "again": AggregateByTime(**of_results, windows=TumblingWindows(millis=20_000), **given),
        "results": Results(),
    }

    def draw(dag, conf):
        copies = placed(dag, **operators)
        dag.set_operator_attribute(copies["aggregate"], OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        copies["again"].late >> dag.add_operator("late", Late())

    return draw


def write(home, name, seconds):
    lines = [f"{(START + timedelta(seconds=s)).isoformat()} {'ab'[s % 2]} {s}\n" for s in seconds]
    old_file(home / "in" / name, "".join(lines))


def received(desk, operator="results"):
    found = [item for state in desk.loop().state.get(operator, ()) for item in state.get("received", [])]
    return [tuple(item["~tuple"] if isinstance(item, dict) else item) for item in found]


def totals(*ends):
    return [("all", end - 20, end, sum(range(end - 20, end))) for end in ends]
