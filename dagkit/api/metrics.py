"""Metrics: values that an operator reports for each window, beside the items that it sends.

    class Parse(RowOperator):
        rejected = auto_metric(0)                       # a field: reset at the start of each window
        longest = auto_metric(0, aggregators=[max])

        @auto_metric
        def per_block(self) -> float: ...               # called at the end of each window

A metric counts what an operator left out, or read again, if `counted` says so. The ledger records what was left out
with each window; the summary of the launch and the console have the totals. With a `warning`, the first window of a
launch in which the metric is not 0 also logs the warning, in which `{rejected}` is the value of that metric.

Each partition has its own values. For the operator, numbers of all partitions are added up, unless the metric has
aggregators. Without aggregators, values that are not numbers are reported only by partition.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar, overload

from dagkit.api.declared import Assignable, PerInstance
from dagkit.errors import RunFailure, Scene

T = TypeVar("T")
StartT = TypeVar("StartT", bound="int | float | str | list[Any] | dict[str, Any] | None")
DeclaredT = TypeVar("DeclaredT", bound="Callable[..., Any] | property")

Counted = Literal["left out", "read again"]
"""What happened to the things that a metric with a warning counts."""
Aggregator = Callable[[Sequence[Any]], Any]
"""A function from the values of all partitions to one value. Its name, such as `max`, appears in reports."""

_MARK = "_dagkit_metric"


def avg(values: Sequence[float]) -> float:
    """The mean of the values."""
    return sum(values) / len(values)


class MetricsAggregator(ABC):
    """Computes the metrics of an operator from those of all partitions, if one function for each is not enough.

    An operator may implement it. An aggregator in the attribute METRICS_AGGREGATOR takes precedence.
    """

    @abstractmethod
    def aggregate(self, window_id: int, partitions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """The operator's metrics of a window, from those of each partition that reported any."""


def _metric_invalid(operator: str, metric: str, value: object) -> RunFailure:
    """A metric has a value that cannot be reported."""
    return RunFailure(
        f"{operator}.{metric} is {value!r:.60}, of class {type(value).__name__}",
        "make it a number, text, True, False or None, or a list or dict of these",
        Scene(operator),
        code="metric-invalid",
    )


class MetricField(PerInstance[T], Assignable[T]):
    """A metric that the operator assigns: `self.rejected += 1`."""

    store = "_measured"

    def __init__(
        self, start: T, aggregators: Sequence[Aggregator] | None, warning: str | None, counted: Counted | None
    ) -> None:
        self.start = start
        self.aggregators = aggregators
        self.warning = warning
        self.counted = counted

    def fresh(self) -> T:
        return deepcopy(self.start)


@overload
def auto_metric(declared: DeclaredT, /) -> DeclaredT: ...
@overload
def auto_metric(*, aggregators: Sequence[Aggregator]) -> Callable[[DeclaredT], DeclaredT]: ...
@overload
def auto_metric(
    start: StartT,
    /,
    *,
    aggregators: Sequence[Aggregator] | None = None,
    warning: str | None = None,
    counted: Counted | None = None,
) -> MetricField[StartT]: ...
def auto_metric(
    declared: Any = None,
    /,
    *,
    aggregators: Sequence[Aggregator] | None = None,
    warning: str | None = None,
    counted: Counted | None = None,
) -> Any:
    """Declare a metric: a field with an initial value, or, as a decorator, a method or property.

    With several aggregators, the operator has one metric for each, such as `max-longest` and `avg-longest`. With one
    aggregator, the metric keeps its name.

    A number with `counted` counts what is left out, or read again. So does one with a `warning`: what is left out,
    unless `counted` says otherwise. The warning is logged once in a launch, and may name metrics, as in
    `"{rejected} lines are no numbers"`.
    """
    if declared is None:
        return lambda method: _marked(method, aggregators)
    if isinstance(declared, property) or callable(declared):
        return _marked(declared, aggregators)
    return MetricField(declared, aggregators, warning, counted or (None if warning is None else "left out"))


def _marked(method: Any, aggregators: Sequence[Aggregator] | None) -> Any:
    function = method.fget if isinstance(method, property) else method
    setattr(function, _MARK, None if aggregators is None else tuple(aggregators))
    return method


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that a class declares."""

    name: str
    aggregators: tuple[Aggregator, ...] | None
    """None: numbers are added up."""
    is_method: bool = False
    warning: str | None = None
    """Text for the case that it is not 0; None if there is nothing to warn of."""
    counted: Counted | None = None
    """What it counts, if it counts what is left out or read again."""

    def of(self, operator: Any) -> Any:
        """The current value. Raise `metric-invalid` if it cannot be reported."""
        value = getattr(operator, self.name)
        value = value() if self.is_method else value
        if not _is_plain(value):
            raise _metric_invalid(type(operator).__name__, self.name, value)
        return value

    def aggregated(self, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """The name and value of each aggregate over all partitions."""
        if self.aggregators is None:
            # True is an int in Python, but a sum of truth values is no figure that an author meant.
            if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
                yield self.name, sum(values)
            return
        for aggregator in self.aggregators:
            name = self.name if len(self.aggregators) == 1 else f"{aggregator.__name__}-{self.name}"
            yield name, aggregator(values)


@lru_cache(maxsize=1024)
def declared_metrics(component: type) -> Mapping[str, Metric]:
    """The metrics of a class by name; those of its bases come first. A method that overrides a metric is one too."""
    found: dict[str, Metric] = {}
    for ancestor in reversed(component.__mro__):
        for name, value in vars(ancestor).items():
            function = value.fget if isinstance(value, property) else value
            if isinstance(value, MetricField):
                aggregators = None if value.aggregators is None else tuple(value.aggregators)
                found[name] = Metric(name, aggregators, warning=value.warning, counted=value.counted)
            elif callable(function) and _MARK in getattr(function, "__dict__", {}):
                found[name] = Metric(name, getattr(function, _MARK), is_method=not isinstance(value, property))
    return found


@lru_cache(maxsize=1024)
def counting_metrics(component: type) -> Sequence[Metric]:
    """The metrics that count what an operator of this class leaves out or reads again."""
    return [metric for metric in declared_metrics(component).values() if metric.counted is not None]


def metrics_of(operator: Any) -> dict[str, Any]:
    """The current values of all metrics, by name. Raise `metric-invalid` if one cannot be reported."""
    return {name: metric.of(operator) for name, metric in declared_metrics(operator.__class__).items()}


def start_over(operator: Any) -> None:
    """Reset the metrics that are fields."""
    MetricField.values_of(operator).clear()


def aggregated(
    operator: Any, aggregator: MetricsAggregator | None, window_id: int, partitions: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The metrics of an operator in one window, from those of its partitions."""
    reported = [metrics for metrics in partitions if metrics]
    chosen = aggregator or (operator if isinstance(operator, MetricsAggregator) else None)
    if not reported:
        return {}
    if chosen is not None:
        return dict(chosen.aggregate(window_id, reported))
    found: dict[str, Any] = {}
    for name, metric in declared_metrics(operator.__class__).items():
        if values := [metrics[name] for metrics in reported if name in metrics]:
            found.update(metric.aggregated(values))
    return found


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)
