"""The time of planning, and whether it grows linearly with the graph.

A random application with N operators and three times as many streams is compiled from `populate_dag` to its plan: typed
ports, generic operators, modules, delays, partitions, mirrors, attributes. Planning uses one thread, so it is measured
in processor time, independent of other processes; the best of some rounds counts.
"""

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Generic, TypeVar

from dagkit import (
    Config,
    Dag,
    DelayOperator,
    InputOperator,
    InputPort,
    Module,
    Operator,
    OperatorContext,
    OutputPort,
    PortContext,
    StatelessPartitioner,
    StreamingApplication,
)
from dagkit.api.dag import Stream
from dagkit.compiler import compile_application

T = TypeVar("T")

LIMITS_SECONDS = {1_000: 2.0, 10_000: 30.0}
"""The most seconds that planning may take, by number of operators."""

STEEPEST = 1.25
"""The highest allowed power of the size: a graph ten times as large takes less than 18 times as long."""


class Root(InputOperator):
    """A source of numbers."""

    a = OutputPort(int)
    b = OutputPort(int)
    c = OutputPort(int)
    d = OutputPort(int)


class Join(Operator):
    """An operator with inputs of several types, of which at least one is connected."""

    weight: int = 1
    first = InputPort(int)
    second = InputPort(float, optional=True)
    third = InputPort[int | str](optional=True)
    fourth = InputPort(object, optional=True)
    back = InputPort(int, optional=True)
    a = OutputPort(int)
    b = OutputPort(int)
    c = OutputPort(int)
    d = OutputPort(int)
    ahead = OutputPort(int)

    @first.process
    @second.process
    @third.process
    @fourth.process
    @back.process
    def process(self, item: object) -> None:
        """Do nothing: the graph is only planned."""


class Carry(Operator, Generic[T]):
    """An operator whose input type is inferred from its streams."""

    first = InputPort[T]()
    second = InputPort[T](optional=True)
    third = InputPort[T](optional=True)
    fourth = InputPort[T](optional=True)
    a = OutputPort[T]()
    b = OutputPort[T]()
    c = OutputPort[T]()
    d = OutputPort[T]()

    @first.process
    @second.process
    @third.process
    @fourth.process
    def process(self, item: T) -> None:
        """Do nothing: the graph is only planned."""


class Later(DelayOperator[int]):
    """A delay, for loops."""

    kind = "bench.later/1"


class Boxed(Module):
    """A module with one operator."""

    first = InputPort(int)
    second = InputPort(int)
    third = InputPort(int)
    fourth = InputPort(int)
    a = OutputPort(int)
    b = OutputPort(int)
    c = OutputPort(int)
    d = OutputPort(int)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        join = dag.add_operator("join", Join())
        for inlet in INLETS:
            dag.expose(getattr(self, inlet), getattr(join, inlet))
        for outlet in OUTLETS:
            dag.expose(getattr(self, outlet), getattr(join, outlet))


INLETS = ("first", "second", "third", "fourth")
OUTLETS = ("a", "b", "c", "d")


class RandomGraph(StreamingApplication):
    """N operators with three times as many streams; equal for equal seeds."""

    operators: int
    seed: int = 0

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        chance = random.Random(self.seed)
        delays = self.operators // 100
        placed = [dag.add_operator(f"operator {i}", _made(i, chance)) for i in range(self.operators - delays)]
        inner = [number for number, operator in enumerate(placed) if not isinstance(operator, Root)]
        wanted = 3 * self.operators - 2 * delays
        streams: dict[tuple[int, str], Stream] = {}
        free = {number: list(OUTLETS) for number in range(len(placed))}
        for number, port in _inlets(inner, chance):
            if len(streams) == wanted:
                break
            near = [chance.randrange(max(0, number - 500), number) for _ in range(20)]
            source = next((one for one in near if free[one]), near[0])
            outlet = free[source].pop() if free[source] else OUTLETS[0]
            if (source, outlet) not in streams:
                streams[source, outlet] = dag.add_stream(f"{outlet} of {source}", getattr(placed[source], outlet))
            streams[source, outlet].add_sink(getattr(placed[number], port))
        _turn_back(dag, [operator for operator in placed if isinstance(operator, Join)][:delays])
        _divide(dag, [placed[number] for number in inner], chance)


def _made(number: int, chance: random.Random) -> Root | Join | Carry[int] | Boxed:
    if number == 0 or chance.random() < 0.01:
        return Root()
    kinds: list[Join | Carry[int] | Boxed] = [Join(weight=number), Carry[int](), Carry(), Boxed()]
    return chance.choices(kinds, [16, 1, 2, 1])[0]


def _inlets(inner: Sequence[int], chance: random.Random) -> list[tuple[int, str]]:
    """Every first inlet, then the other inlets in random order."""
    others = [(number, port) for number in inner for port in INLETS[1:]]
    chance.shuffle(others)
    return [*((number, INLETS[0]) for number in inner), *others]


def _turn_back(dag: Dag, joins: Sequence[Join]) -> None:
    """Add a loop with a delay to each of these operators."""
    for number, join in enumerate(joins):
        later = dag.add_operator(f"later {number}", Later())
        dag.add_stream(f"ahead {number}", join.ahead, later.input)
        dag.add_stream(f"back {number}", later.output, join.back)


def _divide(dag: Dag, operators: Sequence[Root | Join | Carry[int] | Boxed], chance: random.Random) -> None:
    """Partition a fifth of the operators, except roots, which run once; let a tenth mirror their upstream operator."""
    for operator in chance.sample(operators, len(operators) // 5):
        partitioner = StatelessPartitioner(chance.randint(2, 8))
        if not isinstance(operator, Root):
            dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, partitioner)
    for operator in chance.sample(operators, len(operators) // 10):
        assert not isinstance(operator, Root), "roots have no inputs"
        dag.set_input_port_attribute(operator.first, PortContext.PARTITION_PARALLEL, True)


@dataclass(frozen=True, slots=True)
class Measured:
    """The result for one size."""

    operators: int
    streams: int
    seconds: float
    limit_seconds: float | None

    @property
    def holds(self) -> bool:
        return self.limit_seconds is None or self.seconds <= self.limit_seconds


def measured(operators: int, rounds: int) -> Measured:
    """The best time of some rounds, from `populate_dag` to the plan."""
    best = math.inf
    for _ in range(rounds):
        begun = time.process_time()
        plan = compile_application(RandomGraph(operators=operators)).plan
        best = min(best, time.process_time() - begun)
        assert (len(plan.operators), len(plan.streams)) == (operators, 3 * operators), "all of the graph is planned"
    return Measured(operators, 3 * operators, best, LIMITS_SECONDS.get(operators))


def power(small: Measured, large: Measured) -> float:
    """The power of the size with which time grew: one is linear, two is quadratic."""
    return math.log(large.seconds / small.seconds) / math.log(large.operators / small.operators)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if a limit was exceeded."""
    parser = argparse.ArgumentParser(prog="python -m bench compile", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args(arguments)
    found = [measured(operators, rounds) for operators, rounds in ((1_000, 5), (3_000, 3), (10_000, 2))]
    growth = power(found[0], found[-1])
    kept = all(size.holds for size in found) and growth <= STEEPEST
    if asked.json:
        sizes = [{**asdict(size), "holds": size.holds} for size in found]
        growing = {"power": growth, "steepest": STEEPEST, "holds": growth <= STEEPEST}
        print(
            json.dumps({"schema": "dagkit.bench.compile/1", "sizes": sizes, "growth": growing, "holds": kept}, indent=2)
        )
        return 0 if kept else 1
    for line in _lines(found, growth):
        print(line)
    return 0 if kept else 1


def _lines(found: Sequence[Measured], growth: float) -> Iterator[str]:
    yield f"{'operators':>10}{'streams':>10}{'seconds':>10}{'limit':>10}"
    for size in found:
        limit = "" if size.limit_seconds is None else f"{size.limit_seconds:.0f}"
        missed = "" if size.holds else "  MISSED"
        yield f"{size.operators:>10,}{size.streams:>10,}{size.seconds:>10.2f}{limit:>10}{missed}"
    sizes, times = found[-1].operators / found[0].operators, found[-1].seconds / found[0].seconds
    yield f"{sizes:.0f} times the operators took {times:.1f} times as long: time grows with the power {growth:.2f}"
    yield f"of the size, at most {STEEPEST} is allowed{'' if growth <= STEEPEST else '  MISSED'}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
