"""What every backend reports of a window: the items of each port, and the metrics that operators declare."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from dagkit import Context, Dag, InputOperator, MetricsAggregator, Operator, RowOperator, State, auto_metric, avg
from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.api.ports import InputPort, OutputPort
from dagkit.api.running import Until
from dagkit.api.stats import BatchedOperatorStats, Response, StatsListener
from dagkit.compiler import compile_application
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.engine.record.run_events import Measured
from dagkit.engine.run.loop import Loop
from dagkit.engine.worker.lifecycle import ReportedFinalizer, call_back
from dagkit.ledger import Ledger
from dagkit.ledger.stores import MemoryStore
from dagkit.testing.crashes import Crash, CrashAfter
from dagkit_operators import FileInfo, Items, Map, MatchFiles, ReadFiles
from tests.backends.cast import chain, chained
from tests.backends.places import SPARK, everywhere
from tests.engine.cast import chain as drawn
from tests.old_files import aged

WINDOWS = ((1, 2, 3, 4, 5), (6, 7))


class Numbers(InputOperator):
    output = OutputPort(int)
    at = State(0)
    largest = auto_metric(0, aggregators=[max])

    def emit_tuples(self) -> None:
        for number in WINDOWS[self.at] if self.at < len(WINDOWS) else ():
            self.output.emit(number)
            self.largest = max(self.largest, number)
        self.at += 1


class Odd(RowOperator):
    input = InputPort(int)
    output = OutputPort(int)
    seen = State(0)
    dropped = auto_metric(0)

    def process(self, item: int) -> Iterator[int]:
        self.seen += 1
        if item % 2:
            yield item
        else:
            self.dropped += 1

    @auto_metric(aggregators=[min, max, avg])
    def so_far(self) -> int:
        return self.seen

    @property
    @auto_metric
    def called(self) -> str:
        return "odd"


def odd_numbers(dag: Dag, conf: object, aggregator: MetricsAggregator | None = None) -> None:
    sink = chained(dag, {"odd": 2}, numbers=Numbers(), odd=Odd(), sink=Map[int, int](int))
    dag.set_operator_attribute(dag.operator("odd"), OperatorContext.METRICS_AGGREGATOR, aggregator)
    dag.set_input_port_attribute(sink.input, PortContext.PARTITION_PARALLEL, True)


@pytest.fixture
def measure(make):
    def measured(draw: Any) -> Sequence[Measured]:
        compilation, ledger, told = compile_application(draw), Ledger(MemoryStore()), list[Measured]()
        settings = RunSettings("nowhere", until=Until.IDLE, overlap=1)
        observers = [lambda event: told.append(event) if isinstance(event, Measured) else None]
        Loop(RunState(compilation, make(compilation), ledger, settings, observers=observers)).run()
        return told

    return measured


def counts(measured: Measured, operator: str, side: str) -> Counter[str]:
    ports = [port for stats in measured.operators[operator] for port in getattr(stats, f"{side}_ports")]
    return sum((Counter({port.port: port.tuple_count}) for port in ports), Counter())


@everywhere
def test_items_are_counted_at_each_port_and_metrics_are_values_of_a_partition_and_of_the_operator(measure):
    first, second = windows = measure(odd_numbers)[:2]
    for operator, side, found in (
        *(("numbers", "output", [5, 2]), ("odd", "input", [5, 2]), ("odd", "output", [3, 1])),
        *(("sink", "input", [3, 1]), ("sink", "output", [0, 0])),  # no stream begins there
    ):
        assert [counts(each, operator, side)[side] for each in windows] == found
    assert sum(stats.metrics["dropped"] for stats in first.operators["odd"]) == 2
    assert [stats.metrics["called"] for stats in first.operators["odd"]] == ["odd", "odd"]
    assert first.metrics["odd"] == {"dropped": 2, "min-so_far": 2, "max-so_far": 3, "avg-so_far": 2.5}
    assert second.metrics["odd"]["dropped"] == 1, "a field starts over with each window"
    assert second.metrics["odd"]["avg-so_far"] == 3.5, "what is asked of state goes on with it"
    assert [each.metrics["numbers"] for each in windows] == [{"largest": 5}, {"largest": 7}], "of its looks"
    assert "sink" not in first.metrics


def test_found_files_are_counted_where_they_are_sent_and_where_they_are_read(measure, tmp_path, caplog):
    for name, text in (("a.txt", "1\n2\n"), ("b.txt", "3\n")):
        (tmp_path / name).write_text(text)
        aged(tmp_path / name)

    same, found = Map[FileInfo, FileInfo](lambda file: file), Items[str](items=(str(tmp_path),))
    first = measure(drawn(found=found, match=MatchFiles(), same=same, read=ReadFiles()))[0]
    assert counts(first, "match", "output") == {"files": 2}
    assert counts(first, "same", "output") == {"output": 2}
    assert counts(first, "read", "input") == {"files": 2}
    assert not [record for record in caplog.records if "do not add up" in record.message]


def slowly(item: int) -> int:
    return sum(range(2_000_000)) + item


@pytest.mark.parametrize("make", ["reference", SPARK], indirect=True)
def test_the_busiest_operator_of_a_fused_chain_is_one_and_all_share_the_time_of_their_slot(measure):
    def fused(dag: Dag, conf: object) -> None:
        after = {"before": Map[int, int](int), "slow": Map[int, int](slowly), "after": Map[int, int](int)}
        chained(dag, {"before": 2}, numbers=Numbers(), **after)
        for name in after:
            operator: Any = dag.operator(name)
            dag.set_input_port_attribute(operator.input, PortContext.PARTITION_PARALLEL, name != "before")

    first = measure(fused)[0]
    names = ("before", "slow", "after")
    for partition in (0, 1):
        busy = {name: first.operators[name][partition].busy_millis for name in names}
        assert max(busy, key=lambda name: busy[name]) == "slow"
        whole = sum(stage.millis for stage in first.stages if stage.slot == partition)
        assert sum(busy.values()) == pytest.approx(whole)


class Ear(StatsListener):
    def __init__(self) -> None:
        self.told: list[BatchedOperatorStats] = []

    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        self.told.append(stats)
        return Response()


def test_listeners_receive_figures_and_metrics_of_each_partition(measure):
    ear = Ear()

    def heard(dag: Dag, conf: object) -> None:
        odd_numbers(dag, conf)
        dag.set_operator_attribute(dag.operator("odd"), OperatorContext.STATS_LISTENERS, [ear])

    measure(heard)
    first = [window for told in ear.told for window in told.last_windowed_stats if window.window_id == 1]
    assert all(window.cpu_nanos > 0 and window.busy_millis > 0 for window in first)
    assert sorted(window.input_ports[0].tuple_count for window in first) == [2, 3]
    assert sum(window.metrics["dropped"] for window in first) == 2
    assert all(told.latency_ma_millis > 0 for told in ear.told if told.last_windowed_stats)


class Spread(MetricsAggregator):
    def aggregate(self, window_id: int, partitions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        so_far = [metrics["so_far"] for metrics in partitions]
        return {"spread": max(so_far) - min(so_far), "window": window_id}


def test_an_aggregator_makes_the_metrics_of_all_partitions(measure):
    assert measure(partial(odd_numbers, aggregator=Spread()))[0].metrics["odd"] == {"spread": 1, "window": 1}


class Raising(MetricsAggregator):
    def aggregate(self, window_id: int, partitions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        raise ZeroDivisionError


def test_an_aggregator_that_raises_is_logged_once_and_the_run_goes_on(measure, caplog):
    told = measure(partial(odd_numbers, aggregator=Raising()))
    assert all("odd" not in each.metrics for each in told)
    assert len(told) >= 2
    assert [record.message for record in caplog.records] == [
        "the metrics of odd cannot be aggregated, and are no longer reported"
    ]


def note(path: str, text: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def refuse() -> None:
    raise ConnectionError("the broker is away")


class Unrestored:
    """A callback that can be pickled, and that cannot be made of what was written."""

    def __reduce__(self) -> Any:
        return refuse, ()

    def __call__(self) -> None: ...


class Unwritable(Unrestored):
    def __reduce__(self) -> Any:
        raise ValueError("it holds a connection")


class Messages(InputOperator):
    messages = OutputPort(str)
    place: str
    done = State(0)

    def setup(self, context: Context) -> None:
        self._context = context

    def emit_tuples(self) -> None:
        if self.done < 2:
            self.messages.emit(f"m{self.done}")
            self._context.finalizer.register(lambda: note(self.place, "driver"))
            self.done += 1


class Acknowledge(Operator):
    """Registers another callback for each message, and acknowledges it, from a worker."""

    messages = InputPort(str)
    place: str
    other: Any = None
    """Makes the other callback."""

    def setup(self, context: Context) -> None:
        self._context = context

    def process(self, item: str) -> None:
        if self.other is not None:
            self._context.finalizer.register(self.other())
        self._context.finalizer.register(partial(note, self.place, item))


def run(home: Path, make: Any, ledger: Ledger, probe: Any = None, **given: Any) -> None:
    place = str(home / "acknowledged")
    compilation = chain(messages=Messages(place=place), acknowledge=Acknowledge(place=place, **given))
    settings = RunSettings("nowhere", until=Until.IDLE)
    Loop(RunState(compilation, make(compilation), ledger, settings, probe=probe)).run()


def acknowledged(home: Path) -> list[str]:
    place = home / "acknowledged"
    return sorted(place.read_text().split()) if place.exists() else []


@everywhere
def test_the_driver_calls_what_was_registered_once(tmp_path, make):
    run(tmp_path, make, Ledger(MemoryStore()))
    assert acknowledged(tmp_path) == ["driver", "driver", "m0", "m1"]


@pytest.mark.parametrize("point", [Point.RUNNING, Point.STAGED, Point.APPENDED])
def test_nothing_is_called_before_the_commit(tmp_path, make, point):
    ledger = Ledger(MemoryStore())
    with pytest.raises(Crash):
        run(tmp_path, make, ledger, CrashAfter(point, 1))
    assert acknowledged(tmp_path) == []
    run(tmp_path, make, ledger)
    assert [text for text in acknowledged(tmp_path) if text != "driver"] == (
        ["m1"] if point is Point.APPENDED else ["m0", "m1"]
    )


@everywhere
@pytest.mark.parametrize(
    ("other", "name"), [(lambda: refuse, "<function refuse"), (Unrestored, "a callback that the driver cannot restore")]
)
def test_a_callback_that_fails_or_that_the_driver_cannot_restore_is_logged(tmp_path, make, caplog, other, name):
    run(tmp_path, make, Ledger(MemoryStore()), other=other)
    assert acknowledged(tmp_path) == ["driver", "driver", "m0", "m1"]
    assert re.search(f"{name}.* failed after its records were committed", caplog.text)


@pytest.mark.parametrize("unsent", [lambda: Lock().acquire, Unwritable])
def test_a_callback_that_cannot_be_sent_is_refused_where_it_is_registered(tmp_path, make, unsent):
    with pytest.raises(OperatorFailed, match="cannot be sent to the driver; register a function of values") as raised:
        run(tmp_path, make, Ledger(MemoryStore()), other=unsent)
    assert raised.value.failure.operator == "acknowledge"


def test_the_log_of_a_callback_that_fails_names_its_file(caplog):
    finalizer = ReportedFinalizer()
    finalizer.register(lambda: 1 / 0)
    call_back(finalizer.written)
    assert f'File "{__file__}"' in caplog.text
