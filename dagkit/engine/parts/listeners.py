"""Stats listeners receive the statistics and the backlog of an operator's partitions, and return requested changes.

The loop asks them before a window begins (the first one included) if a window was committed or an input found
something since it last asked; and at each heartbeat while there is nothing to do.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from dagkit.api.attributes import OperatorContext
from dagkit.api.partitioning import Partitioner
from dagkit.api.stats import Backlog, BatchedOperatorStats, OperatorStats, PortStats, Response, StatsListener
from dagkit.compiler.partition import partitioner_of
from dagkit.engine.parts.running_plan import RunningPlan, Scaling
from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Scaled
from dagkit.engine.record.statistics import Lately, ReadingSpeed, WindowCosts, capacity_of, stats_of
from dagkit.engine.work.split import NO_BACKLOG
from dagkit.engine.worker.protocol import Answer, Cores
from dagkit.graph import Node

_logger = logging.getLogger(__name__)


@dataclass
class _Course:
    """The recent statistics of one partition."""

    number: int
    """Its physical ID, unique among the partitions of all operators."""
    lately: Lately
    since: list[OperatorStats] = field(default_factory=list)
    """The windows since the listeners were last asked."""

    def add(self, stats: OperatorStats, at: datetime, latency_millis: float) -> None:
        self.since.append(stats)
        self.lately.add(stats, at, latency_millis)


@dataclass
class _Listened:
    """An operator with listeners."""

    node: Node
    listeners: list[StatsListener]
    courses: dict[int, _Course] = field(default_factory=dict)
    speed: ReadingSpeed = field(default_factory=ReadingSpeed)


class StatsListeners:
    """All listeners of an application."""

    def __init__(self, plan: RunningPlan, began: datetime) -> None:
        self._began = began
        self._numbers = 0
        self._costs = WindowCosts()
        self._refused: set[tuple[str, int]] = set()
        self._listened: dict[str, _Listened] = {}
        self._news = True
        """Whether there are statistics that the listeners have not received."""
        self._asked = began
        """When the listeners were last asked."""
        self.follow(plan)

    @property
    def has_news(self) -> bool:
        """Whether there are listeners that have not received the newest statistics."""
        return bool(self._listened) and self._news

    def is_time(self, now: datetime) -> bool:
        """Whether the heartbeat is due, at which listeners are asked while there is nothing to do."""
        return bool(self._listened) and now >= self._asked + self._summary.heartbeat

    def follow(self, plan: RunningPlan) -> None:
        """Follow a changed application: keep the statistics of the operators that remain."""
        self._plan, self._summary = plan, plan.summary
        before, self._listened = self._listened, {}
        for node in plan.graph.nodes:
            listeners = _listeners_of(plan, node)
            if not listeners or node.name not in plan.program.stage_of:
                continue
            known = before.get(node.name)
            if known is None:
                self._listened[node.name] = _Listened(node, listeners)
            elif known.node.operator is node.operator and known.node.attributes == node.attributes:
                self._listened[node.name] = known  # its listeners that raised stay removed
            else:
                self._listened[node.name] = replace(known, node=node, listeners=listeners)

    def notify_found(self) -> None:
        """Note that an input found something: the listeners are asked before the next window."""
        self._news = True

    def committed(self, window_id: int, answer: Answer, at: datetime, millis: float) -> None:
        """Record the statistics of a committed window and its duration."""
        self._news = True
        if not self._listened:
            return
        self._costs.committed(millis, max((report.busy_millis for report in answer.reports), default=0.0))
        program = self._plan.program
        for name, listened in self._listened.items():
            level = program.stage_of[name].level
            read = busy = 0.0
            for report in answer.reports:
                figures = report.figures.get(name)
                if report.level != level or figures is None:
                    continue
                operator = program.operators[name][0]
                stats = stats_of(operator, figures, window_id=window_id, ended=at)
                self._course(listened, report.slot).add(stats, at, figures.millis)
                if figures.read:
                    read, busy = read + figures.read, busy + report.busy_millis
            listened.speed.read(read, busy)

    def ask(
        self, window_id: int, backlogs: Mapping[Address, Backlog], cores: Cores, now: datetime
    ) -> tuple[list[Scaling], list[Scaled]]:
        """Ask all listeners, given the backlog of each input. Return requested changes and reviews without change."""
        self._news, self._asked = False, now
        changes, facts = [], []
        for name, listened in self._listened.items():
            stats = self._stats_of(listened, window_id, backlogs, cores, now)
            responses = self._answers(listened, stats)
            if any(response.repartition_required for response in responses):
                change = self._change(listened, stats, responses)
                if (name, change.wanted) not in self._refused:
                    changes.append(change)
            else:
                facts += [self._reviewed(name, response, now) for response in responses if response.inputs is not None]
        return changes, facts

    def notify_partitioned(self, operator: str) -> None:
        """Report the partitions of an operator to its partitioner, by their physical IDs."""
        graph, compilation = self._plan.graph, self._plan.compilation
        partitioner, _ = partitioner_of(graph, graph.by_name[operator])
        if partitioner is None:
            return
        listened = self._listened.get(operator)
        partitions = compilation.partitioned[operator].partitions
        ids = [i if listened is None else self._course(listened, i).number for i in range(len(partitions))]
        try:
            partitioner.partitioned(dict(zip(ids, partitions, strict=True)))
        except Exception:
            _logger.exception("%s.partitioned raised for the partitions of %s", type(partitioner).__name__, operator)

    def refused(self, change: Scaling) -> None:
        """Ignore later requests for a change that was refused."""
        self._refused.add((change.operator, change.wanted))

    def _stats_of(
        self, listened: _Listened, window_id: int, backlogs: Mapping[Address, Backlog], cores: Cores, now: datetime
    ) -> list[BatchedOperatorStats]:
        """Return the statistics of each partition for the listeners."""
        name = listened.node.name
        count = self._plan.count(name)
        port = self._queued_port(name)
        backlog = None if port is None else backlogs.get(Address.of(name, port), NO_BACKLOG)
        capacity = capacity_of(cores, listened.speed, self._costs)
        stats_of_all = []
        for partition in range(count):
            course = self._course(listened, partition)
            windows, course.since = course.since, []
            if port is not None and backlog is not None:
                # All partitions take from one queue. Listeners of Apex expect a queue for each, so it is divided
                # evenly.
                share = (backlog.blocks + count - 1 - partition) // count, backlog.positions // count
                # Without a window since the last question, as before the first one, listeners still find the queue.
                windows = _with_queue(windows or [OperatorStats(window_id)], port, *share)
            stats_of_all.append(
                BatchedOperatorStats(
                    operator_id=course.number,
                    current_window_id=window_id,
                    last_windowed_stats=windows,
                    tuples_processed_psma=course.lately.processed_per_second,
                    tuples_emitted_psma=course.lately.emitted_per_second,
                    cpu_percentage_ma=course.lately.cpu_percentage,
                    latency_ma_millis=course.lately.latency_millis,
                    operator=name,
                    partition=partition,
                    partitions=count,
                    at=now,
                    backlog=backlog,
                    capacity=capacity,
                )
            )
        return stats_of_all

    def _answers(self, listened: _Listened, stats: Sequence[BatchedOperatorStats]) -> list[Response]:
        """Return the responses in partition order. A listener that raises is removed; the run continues."""
        responses = []
        for listener in list(listened.listeners):
            try:
                responses += [_checked(listener, listener.process_stats(one)) for one in stats]
            except Exception:
                named = f"{type(listener).__name__} of {listened.node.name}"
                _logger.exception("the listener %s raised, and is not called again", named)
                listened.listeners.remove(listener)
        return responses

    def _change(
        self, listened: _Listened, stats: Sequence[BatchedOperatorStats], responses: Sequence[Response]
    ) -> Scaling:
        """Return the requested scaling of an operator; of several requests, the one with the most partitions."""
        asking = [response for response in responses if response.repartition_required]
        loads = [0] * len(stats)
        for index, response in enumerate(responses):
            loads[index % len(stats)] = response.load_indicator or loads[index % len(stats)]
        chosen = max(asking, key=lambda response: response.partitions or 0)
        return Scaling(
            operator=listened.node.name,
            wanted=chosen.partitions or 0,
            loads=tuple(loads),
            stats=tuple(stats),
            policy=chosen.policy or _names(listened),
            rule=chosen.repartition_note or "asked for by its listener",
            inputs=chosen.inputs or {},
        )

    def _reviewed(self, name: str, response: Response, now: datetime) -> Scaled:
        count = self._plan.count(name)
        return Scaled(
            operator=name,
            at=now,
            before=count,
            after=count,
            policy=response.policy or _names(self._listened[name]),
            rule=response.repartition_note,
            inputs=response.inputs or {},
        )

    def _queued_port(self, operator: str) -> str | None:
        return next((into.port for into in self._summary.slots if into.operator == operator), None)

    def _course(self, listened: _Listened, partition: int) -> _Course:
        if partition not in listened.courses:
            self._numbers += 1
            listened.courses[partition] = _Course(self._numbers, Lately(self._began))
        return listened.courses[partition]


def _listeners_of(plan: RunningPlan, node: Node) -> list[StatsListener]:
    """The listeners in STATS_LISTENERS, and the partitioner and the operator if they are listeners.

    A partitioner that listens replaces an operator that partitions itself. A listener that STATS_LISTENERS also names
    is asked once.
    """
    given: Any = plan.graph.value(node, OperatorContext.STATS_LISTENERS)
    many = given if isinstance(given, list | tuple) else [] if given is None else [given]
    listeners = [one for one in many if isinstance(one, StatsListener)]
    operator: Any = node.operator
    partitioner: Any = partitioner_of(plan.graph, node)[0]
    replaced = isinstance(partitioner, StatsListener) and isinstance(operator, Partitioner)
    for own in [partitioner] if replaced else [partitioner, operator]:
        if isinstance(own, StatsListener) and not any(type(listener) is type(own) for listener in listeners):
            listeners.append(own)
    return listeners


def _names(listened: _Listened) -> str:
    return ", ".join(type(listener).__name__ for listener in listened.listeners)


def _checked(listener: StatsListener, response: Any) -> Response:
    if not isinstance(response, Response):
        raise TypeError(f"process_stats of {type(listener).__name__} gave {type(response).__name__}, not Response")
    return response


def _with_queue(windows: Sequence[OperatorStats], port: str, blocks: int, positions: int) -> list[OperatorStats]:
    """Add the present queue size to the last window."""
    last = windows[-1]
    others = [one for one in last.input_ports if one.port != port]
    mine = next((one for one in last.input_ports if one.port == port), PortStats(port, bytes=positions))
    return [*windows[:-1], replace(last, input_ports=(replace(mine, queue_size=blocks), *others))]
