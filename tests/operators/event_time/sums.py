"""An application that reads files, and sums their records in windows of event time, twice."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dagkit import Dag, InputPort, Operator, OperatorContext, State, StatelessPartitioner
from dagkit_operators import (
    AggregateByTime,
    EventTime,
    FileSplitterInput,
    LineReader,
    Map,
    TumblingWindows,
    WindowResult,
)
from tests.engine.cast import Desk

START = datetime(2024, 1, 1, tzinfo=UTC)


def parsed(line: str) -> tuple[str, str, int]:
    time, key, number = line.split()
    return time, key, int(number)


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


def sums(home: Path, windows: Any = None, partitions: int = 2, **given: Any) -> Any:
    def draw(dag: Dag, conf: object) -> None:
        find = dag.add_operator("find", FileSplitterInput(scanner={"files": [str(home / "in")]}, block_size=64))
        read = dag.add_operator("read", LineReader())
        parse = dag.add_operator("parse", Map(parsed))
        time = dag.add_operator("time", EventTime(time=lambda item: item[0]))
        aggregate = dag.add_operator(
            "aggregate",
            AggregateByTime(
                time=lambda item: item[0],
                key=lambda item: item[1],
                of=lambda item: item[2],
                windows=windows or TumblingWindows(millis=10_000),
                **given,
            ),
        )
        dag.set_operator_attribute(aggregate, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        again = dag.add_operator(
            "again",
            AggregateByTime(
                time=lambda result: result.event_time,
                key=lambda result: "all",
                of=lambda result: result.result,
                windows=TumblingWindows(millis=20_000),
                **given,
            ),
        )
        results, late = dag.add_operator("results", Results()), dag.add_operator("late", Late())
        dag.add_stream("blocks", find.blocks_metadata_output, read.blocks_metadata_input)
        dag.add_stream("lines", read.messages, parse.input)
        dag.add_stream("parsed", parse.output, time.input)
        dag.add_stream("timed", time.output, aggregate.input)
        dag.add_stream("sums", aggregate.results, again.input)
        dag.add_stream("totals", again.results, results.results)
        dag.add_stream("late", again.late, late.items)

    return draw


def write(home: Path, name: str, seconds: Iterable[int]) -> None:
    (home / "in").mkdir(exist_ok=True)
    lines = [f"{(START + timedelta(seconds=s)).isoformat()} {'ab'[s % 2]} {s}\n" for s in seconds]
    (home / "in" / name).write_text("".join(lines))


def received(desk: Desk, operator: str = "results") -> list[Any]:
    states: Any = desk.loop().run_state.state.get(operator, ())
    found = [item for state in states for item in state.get("received", [])]
    return [tuple(item["~tuple"] if isinstance(item, dict) else item) for item in found]


def totals(*ends: int) -> list[tuple[str, int, int, int]]:
    return [("all", end - 20, end, sum(range(end - 20, end))) for end in ends]
