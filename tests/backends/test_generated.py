"""Generated graphs: whatever the wiring, all backends give the same result, with batches or without."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from dagkit import Batch, Dag, DelayOperator, InputPort, KeyedState, Operator, OutputPort, RowOperator, State, Unifier
from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.api.keyed import saved_keys
from dagkit.api.running import Until
from dagkit.backends.reference import ReferenceBackend
from dagkit.backends.spark import SparkBackend
from dagkit.compiler import Compilation, compile_application
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.run.loop import Loop
from dagkit.engine.worker.protocol import Answer, Backend, WindowTask
from dagkit.errors import ApplicationFaults
from dagkit.ledger import Ledger
from dagkit.ledger.stores import MemoryStore
from dagkit.testing import FakeClock
from tests.backends.cast import in_partitions
from tests.backends.slots import InSlots
from tests.engine.cast import Collect, Hurried, Script, arrived

# ---- what graphs are made of


class Plus(RowOperator):
    input = InputPort(int)
    output = OutputPort(int)
    added: int = 1

    def process(self, item: int) -> Iterator[int]:
        yield item + self.added


class PlusInBatches(Plus):
    def process_batch(self, batch: Batch[int]) -> Batch[int]:
        return Batch.of([item + self.added for item in batch.items()])


class Fork(RowOperator):
    input = InputPort(int)
    output = OutputPort(int)
    added: int = 1

    def process(self, item: int) -> Iterator[int]:
        for time in range((item + self.added) % 3):
            yield item * 2 + time


class ForkInBatches(Fork):
    def process_batch(self, batch: Batch[int]) -> Batch[int]:
        return Batch.of([made for item in batch for made in self.process(item)])


class Both(Operator):
    left = InputPort(int)
    right = InputPort(int)
    output = OutputPort(int)
    added: int = 1

    @left.process
    def on_left(self, item: int) -> None:
        self.output.emit(item + self.added)

    @right.process
    def on_right(self, item: int) -> None:
        self.output.emit(item - self.added)


class AddUp(Unifier[tuple[int, int]]):
    sums = KeyedState[int, int](int)

    def process(self, item: tuple[int, int]) -> None:
        self.sums[item[0]] += item[1]

    def end_window(self) -> None:
        for pair in self.sums.items():
            self.unified.emit(pair)


class Tally(Operator):
    """How often each remainder came in this window; and so far, for readers of its state."""

    input = InputPort[int](key=lambda item: item % 5)
    output = OutputPort[tuple[int, int]](unifier=AddUp)
    added: int = 1
    in_window = KeyedState[int, int](int)
    so_far = KeyedState[int, int](int)

    def process(self, item: int) -> None:
        self.in_window[item % 5] += 1
        self.so_far[item % 5] += self.added

    def end_window(self) -> None:
        for pair in self.in_window.items():
            self.output.emit(pair)
        self.in_window.clear()


class TallyInBatches(Tally):
    def process_batch(self, batch: Batch[int]) -> None:
        for key, count in Counter(item % 5 for item in batch.items()).items():
            self.in_window[key] += count
            self.so_far[key] += count * self.added


class Flat(Operator):
    input = InputPort[tuple[int, int]]()
    output = OutputPort(int)

    def process(self, item: tuple[int, int]) -> None:
        self.output.emit(item[0] * 100 + item[1])


class Sum(Operator):
    """The sum so far, emitted at the end of each window in which an item came."""

    input = InputPort(int)
    output = OutputPort(int)
    added: int = 1
    total = State(0)
    fresh = State[bool](False)

    def process(self, item: int) -> None:
        self.total += item * self.added
        self.fresh = True

    def end_window(self) -> None:
        if self.fresh:
            self.output.emit(self.total)
            self.fresh = False


class Round(Operator):
    """Sends each number on, and a smaller one around, until there is none."""

    begin = InputPort(int)
    again = InputPort(int)
    output = OutputPort(int)
    around = OutputPort(int)

    @begin.process
    def on_begin(self, item: int) -> None:
        self.output.emit(item)
        if item % 4:
            self.around.emit(item % 4 - 1)

    @again.process
    def on_again(self, item: int) -> None:
        self.output.emit(item)
        if item > 0:
            self.around.emit(item - 1)


# ---- how they are wired

Shape = Literal["plus", "fork", "both", "tally", "sum", "round"]
KINDS: Mapping[Shape, tuple[Callable[..., Operator], Callable[..., Operator]]] = {
    "plus": (Plus, PlusInBatches),
    "fork": (Fork, ForkInBatches),
    "both": (Both, Both),
    "tally": (Tally, TallyInBatches),
    "sum": (Sum, Sum),
    "round": (Round, Round),
}


@dataclass(frozen=True)
class Vertex:
    shape: Shape
    inputs: tuple[int, int]
    """Which outputs before it feed it; one that has a single input takes the first."""
    added: int
    partitions: int
    parallel: bool
    count: int
    """Streaming windows of an application window."""
    slide: bool


@dataclass(frozen=True)
class Sketch:
    sources: tuple[tuple[tuple[int, ...], ...], ...]
    vertices: tuple[Vertex, ...]

    def draw(self, *, batches: bool) -> Callable[[Dag, Any], None]:
        def populate_dag(dag: Dag, conf: object) -> None:
            sources = [Script(looks=looks, pause_millis=0) for looks in self.sources]
            outputs = [dag.add_operator(f"source{number}", source).out for number, source in enumerate(sources)]
            fed: dict[int, list[Any]] = {}
            for number, vertex in enumerate(self.vertices):
                inlets, outlet = self._place(dag, f"{vertex.shape}{number}", vertex, batches=batches)
                for inlet, chosen in zip(inlets, vertex.inputs, strict=False):
                    fed.setdefault(chosen % len(outputs), []).append(inlet)
                outputs.append(outlet)
            for number, outlet in enumerate(outputs):
                inlets = fed.get(number) or [dag.add_operator(f"collect{number}", Collect()).input]
                dag.add_stream(f"stream{number}", outlet, *inlets)

        return populate_dag

    def _place(self, dag: Dag, name: str, vertex: Vertex, *, batches: bool) -> tuple[list[Any], Any]:
        kind = KINDS[vertex.shape][batches]
        operator: Any = dag.add_operator(name, kind() if kind is Round else kind(added=vertex.added))
        if vertex.shape != "sum":
            in_partitions(dag, operator, vertex.partitions)
        if vertex.shape in ("tally", "sum"):
            dag.set_operator_attribute(operator, OperatorContext.APPLICATION_WINDOW_COUNT, vertex.count)
            if vertex.slide and vertex.count > 1:
                dag.set_operator_attribute(operator, OperatorContext.SLIDE_BY_WINDOW_COUNT, 1)
        if vertex.shape == "both":
            return [operator.left, operator.right], operator.output
        if vertex.shape == "round":
            delay = dag.add_operator(f"{name}-delay", DelayOperator[int]())
            dag.add_stream(f"{name}-around", operator.around, delay.input)
            dag.add_stream(f"{name}-again", delay.output, operator.again)
            return [operator.begin], operator.output
        if vertex.parallel and vertex.shape in ("plus", "fork"):
            dag.set_input_port_attribute(operator.input, PortContext.PARTITION_PARALLEL, True)
        if vertex.shape == "tally":
            flat = dag.add_operator(f"{name}-flat", Flat())
            dag.add_stream(f"{name}-pairs", operator.output, flat.input)
            return [operator.input], flat.output
        return [operator.input], operator.output


numbers = st.lists(st.integers(0, 30), max_size=6).map(tuple)
vertices = st.builds(
    Vertex,
    shape=st.sampled_from(list(KINDS)),
    inputs=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    added=st.integers(1, 3),
    partitions=st.integers(1, 3),
    parallel=st.booleans(),
    count=st.integers(1, 3),
    slide=st.booleans(),
)
sketches = st.builds(
    Sketch,
    sources=st.lists(st.lists(numbers, min_size=1, max_size=3).map(tuple), min_size=1, max_size=2).map(tuple),
    vertices=st.lists(vertices, max_size=6).map(tuple),
)

# ---- what came of them

Came = Mapping[str, Any]


@dataclass
class Counted(Hurried):
    """A backend whose figures are kept: how many items passed each port, by window, operator and partition."""

    figures: dict[tuple[int, str, int], tuple[Any, Any]] = field(default_factory=dict)

    def run(self, assignment: WindowTask) -> Answer:
        answer = self.inner.run(assignment)
        for report in answer.reports:
            for name, figures in report.figures.items():
                counts = dict(figures.taken), dict(figures.sent)
                self.figures[assignment.window_id, name, report.slot] = counts
        return answer


def came(compilation: Compilation, backend: Backend) -> Came:
    counted = Counted(backend)
    once = RunSettings("nowhere", until=Until.ONCE, windows=12)
    # time stands still, so that no backend is so slow that a source is looked at once more
    loop = Loop(RunState(compilation, counted, Ledger(MemoryStore()), once, clock=FakeClock()))
    loop.run()
    found: dict[str, Any] = {"windows": loop.checkpoint.window, "figures": counted.figures}
    for name, states in loop.state.items():
        if name.startswith("collect"):
            found[name] = Counter(arrived(loop, name))
        elif name.startswith("tally") and "." not in name:
            entries = [entry for state in states for entry in saved_keys(state.get("so_far", {})).items()]
            found[name] = Counter({json.loads(text): value for text, (value, _) in entries})
        elif name.startswith("sum") and "." not in name:
            found[name] = [state.get("total") for state in states]
    return found


def compiled(sketch: Sketch, *, batches: bool) -> Compilation:
    try:
        return compile_application(sketch.draw(batches=batches))
    except ApplicationFaults:
        assume(False)
        raise


SLIDING = Sketch(
    sources=(((0,), (0,)),), vertices=(Vertex("tally", (0, 0), 1, 1, parallel=False, count=2, slide=True),)
)
"""What slides goes through a unifier, also before an operator of the same slot."""


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@example(SLIDING)
@given(sketches)
def test_fused_operators_and_batches_come_to_what_single_operators_do_with_single_items(sketch):
    plain, batched = compiled(sketch, batches=False), compiled(sketch, batches=True)
    expected = came(plain, ReferenceBackend(plain))
    assert came(plain, InSlots(plain)) == expected
    assert came(batched, ReferenceBackend(batched)) == expected
    assert came(batched, InSlots(batched)) == expected


@pytest.mark.slow
@settings(max_examples=max(3, settings().max_examples // 10), suppress_health_check=list(HealthCheck))
@given(sketch=sketches, batches=st.booleans())
def test_spark_comes_to_what_the_reference_does(spark, sketch, batches):
    compilation = compiled(sketch, batches=batches)
    with closing(SparkBackend(compilation, spark)) as backend:
        assert came(compilation, backend) == came(compilation, ReferenceBackend(compilation))
