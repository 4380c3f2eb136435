"""Row accounts: the items that operators and streams passed on in a window, and whether they add up. Pure.

The engine counts the items of each port anyway, so an account costs nothing for an item.
"""

from collections.abc import Iterable, Iterator, Mapping

from dagkit.api.metrics import counting_metrics
from dagkit.api.operators import DROPPED, REJECTED, DelayOperator, Operator, Rows, rows_of
from dagkit.api.ports import output_ports
from dagkit.engine.program.program import Port, Program, Target
from dagkit.engine.program.stored_value import StoredValue
from dagkit.engine.worker.protocol import Report
from dagkit.errors import RunFailure, Scene
from dagkit.plan.model import Routing


class OperatorRows(StoredValue):
    """The items that all partitions of an operator received and sent in a window, by port."""

    taken: Mapping[str, int] = {}
    sent: Mapping[str, int] = {}
    rule: Rows | None = None
    """What must hold; None: any number of items may be sent."""
    left_out: Mapping[str, int] = {}
    """What it read and did not send, as its metrics count it, by metric; without zeros."""

    @property
    def received(self) -> int:
        return sum(self.taken.values())

    @property
    def rejected(self) -> int:
        return self.sent.get(REJECTED, 0)

    @property
    def passed_on(self) -> int:
        """The items that were sent and not rejected."""
        return sum(self.sent.values()) - self.rejected

    @property
    def dropped(self) -> int | None:
        """The items that were neither sent nor rejected; below 0 if there were more.

        If the rule allows any number, those that the operator counts; None if it counts none.
        """
        return self.left_out.get(DROPPED) if self._missing is None else self._missing

    @property
    def _missing(self) -> int | None:
        """The items that were received, less those that were sent or rejected; None if the rule allows any number."""
        return None if self.rule in (None, Rows.EXPANDED) else self.received - self.passed_on - self.rejected

    @property
    def adds_up(self) -> bool:
        return not self._missing or (self._missing > 0 and self.rule is Rows.FILTERED)


class StreamRows(StoredValue):
    """The items that entered a stream in a window, and those that one of its sinks received."""

    sent: int
    taken: int
    copies: int = 1
    """How many partitions of the sink receive each item."""

    @property
    def adds_up(self) -> bool:
        return self.taken == self.sent * self.copies


class RowAccount(StoredValue):
    """The items of one window."""

    operators: Mapping[str, OperatorRows] = {}
    streams: Mapping[str, StreamRows] = {}
    """By source and sink, as in `Filter.output > Writer.input`, without streams whose items are merged or delayed."""

    def __bool__(self) -> bool:
        return bool(self.operators)


class RowsUnbalanced(RunFailure):
    """The items of a window do not add up."""

    code = "rows-unbalanced"
    usual_help = "correct the operator, or its declaration of `rows`, then run the window again in a new application"


def row_account(program: Program, reports: Iterable[Report]) -> RowAccount:
    """Return the account of a window, without operators and streams that had no items."""
    taken: dict[str, dict[str, int]] = {}
    sent: dict[str, dict[str, int]] = {}
    left_out: dict[str, dict[str, int]] = {}
    for report in reports:
        for name, figures in report.figures.items():
            counting = counting_metrics(type(program.operators[name][0]))
            counts = {each.name: figures.metrics.get(each.name) for each in counting if each.counted == "left out"}
            _add(left_out.setdefault(name, {}), {metric: count for metric, count in counts.items() if count})
            _add(taken.setdefault(name, {}), figures.taken)
            _add(sent.setdefault(name, {}), figures.sent)
    operators = {
        name: OperatorRows(
            taken=taken[name],
            sent=sent[name],
            rule=_rule(program.operators[name][0], sent[name]),
            left_out=left_out[name],
        )
        for name in taken
        if any(taken[name].values()) or any(sent[name].values()) or left_out[name]
    }
    streams = {
        f"{'.'.join(source)} > {'.'.join(sink)}": StreamRows(sent=entered, taken=arrived, copies=copies)
        for source, sink, copies in _counted_streams(program)
        if (entered := sent.get(source[0], {}).get(source[1], 0)) + (arrived := taken.get(sink[0], {}).get(sink[1], 0))
    }
    return RowAccount(operators=operators, streams=streams)


def breaches(window_id: int, account: RowAccount) -> Iterator[RowsUnbalanced]:
    """Yield an error for each operator and stream whose items do not add up."""
    for name, rows in account.operators.items():
        if not rows.adds_up:
            at_most = "at most " if rows.rule is Rows.FILTERED else ""
            yield RowsUnbalanced(
                f"the items of {name} do not add up in window {window_id}: it received {rows.received}, sent "
                f"{rows.passed_on} and rejected {rows.rejected}; it must send or reject each {at_most}once",
                scene=Scene(name, window_id),
            )
    for stream, items in account.streams.items():
        if not items.adds_up:
            times = f" {items.copies} times" if items.copies > 1 else ""
            yield RowsUnbalanced(
                f"the items of {stream} do not add up in window {window_id}: {items.sent} were sent{times}, and "
                f"{items.taken} arrived",
                "let each partition of the sink own other keys, and all of them own every key",
                Scene(window=window_id),
            )


def _add(into: dict[str, int], counts: Mapping[str, int]) -> None:
    for port, count in counts.items():
        into[port] = into.get(port, 0) + count


def _rule(operator: Operator, sent: Mapping[str, int]) -> Rows | None:
    """The declared rule. Items that leave by an unconnected output are not counted, and so count as dropped."""
    rule = rows_of(type(operator))
    uncounted = output_ports(type(operator)).keys() - sent.keys() - {REJECTED}
    return Rows.FILTERED if rule is Rows.KEPT and uncounted else rule


def _counted_streams(program: Program) -> Iterator[tuple[Port, Port, int]]:
    """The source and the sink of each stream between workers whose items are neither merged nor delayed."""
    for stage in program.stages:
        for source, into in stage.links.items():
            if source not in program.sliders:
                yield source, into, 1
        for source, targets in stage.targets.items():
            # a sliding window or a unifier sends other items than it gets, and a delay sends them in the next window
            if source not in program.sliders and not isinstance(program.operators[source[0]][0], DelayOperator):
                for target in targets:
                    if not (target.unifier or target.delayed or target.queued):
                        yield source, target.into, _copies(target)


def _copies(target: Target) -> int:
    return target.slots if target.routing is Routing.BROADCAST else 1
