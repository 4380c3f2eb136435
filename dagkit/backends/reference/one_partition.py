"""One partition of an operator in the reference: a live instance, and lists of the items that it sends."""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, repeat
from threading import Event
from typing import Any, NamedTuple

from dagkit.api.controls import Delivery, Stamped
from dagkit.api.keyed import Keyed
from dagkit.api.operators import Operator, batch_handler_of, handler_name, handler_of
from dagkit.api.ports import input_ports, output_ports
from dagkit.api.running import Context
from dagkit.api.state import KeyedState, declared_state
from dagkit.backends.reference.plain_reading import PlainReading
from dagkit.engine.files.staging import Staging
from dagkit.engine.program.entrances import code_of, failing_among, note
from dagkit.engine.program.failures import WindowAbandoned
from dagkit.engine.program.program import Keying
from dagkit.engine.worker.instances import SavedState, live
from dagkit.engine.worker.lifecycle import ReportedFinalizer
from dagkit.engine.worker.tracing import Trace, TracedPlace
from dagkit.errors import RunFailure
from dagkit.ranges import Progress
from dagkit.schema import Bindings
from dagkit.schema.batch import Batch
from dagkit.schema.routing import routing_code

_logger = logging.getLogger(__name__)


class Origin(NamedTuple):
    """The origin of an item."""

    order: int = 0
    """The start of the stretch of a block that it was made from: its position in the files of the block."""
    element: Any = None
    """The element that a reader read it from, for messages about a failure."""
    offset: int | None = None
    """The position of the record in the element, if the reader reports it."""
    place: TracedPlace | None = None
    """The claim that it was read by, in a traced attempt."""


UNKNOWN = Origin()


class Placed(NamedTuple):
    """An item and its origin."""

    item: Any
    origin: Origin = UNKNOWN

    @property
    def together(self) -> tuple[int, int]:
        """Equal for items that may be delivered in one batch."""
        return self.origin.order, id(self.origin.element)


@dataclass
class Outcome:
    """What one partition did in one window, counted and measured."""

    began: datetime | None = None
    millis: float = 0.0
    cpu_nanos: int = 0
    moves: int = 0
    """How often it turned to another item."""
    taken: dict[str, int] = field(default_factory=dict)
    """The number of received items, by input port."""
    emitted: dict[str, int] = field(default_factory=dict)
    """The number of sent items, by connected output port, before sliding windows."""
    metrics: dict[str, Any] = field(default_factory=dict)
    watermark: datetime | None = None
    """The watermark that it estimated, if it is not splittable."""
    panes: dict[str, SavedState] = field(default_factory=dict)


@dataclass
class OnePartition:
    """One live instance in one window."""

    name: str
    """The operator that a failure names."""
    operator: Operator
    staging: Staging | None = None
    sent: dict[str, list[Placed]] = field(default_factory=dict)
    """Items, by the output port that they left by."""
    controls: dict[str, list[Stamped]] = field(default_factory=dict)
    """Control tuples, by the output port that they left by."""
    reading: PlainReading | None = None
    taking: Origin = UNKNOWN
    """The origin of the item that it processes, if another operator sent the item."""
    outcome: Outcome = field(default_factory=Outcome)
    finalizer: ReportedFinalizer = field(default_factory=ReportedFinalizer)
    trace: Trace | None = None
    """Where it notes what it processes; None if the attempt is not traced."""
    closed: Event = field(default_factory=Event)
    """Set when its window is abandoned."""
    open: ExitStack = field(default_factory=ExitStack)
    """The calls that are due at the end: `deactivate` and `teardown`."""

    @classmethod
    def started(
        cls,
        name: str,
        configured: Operator,
        kept: SavedState,
        led: Sequence[str],
        staging: Staging | None = None,
        *,
        types: Bindings | None = None,
        closed: Event | None = None,
        trace: Trace | None = None,
    ) -> "OnePartition":
        """Return a partition with a new instance. It keeps the items of connected outputs and drops those of others."""
        partition = cls(name, live(configured, kept, types), staging, trace=trace, closed=closed or Event())
        partition.operator._services["item_origin"] = partition._item_origin  # noqa: SLF001 - served as by the engine
        for port in output_ports(type(configured)):
            partition.sent[port] = []
            partition.controls[port] = []
        for port in led:
            partition._keep_what_leaves(port)
        return partition

    def _keep_what_leaves(self, port: str) -> None:
        sent, operator = self.sent[port], self.operator

        def keep(item: Any) -> None:
            sent.append(Placed(item, self.origin))
            self._sent_something()

        def keep_each(batch: Batch[Any]) -> None:
            order, element, offset, place = self.origin
            offsets = batch.places() or repeat(offset)
            # `repeat` has no end, so the lengths differ.
            sent.extend(
                Placed(item, Origin(order, element, at, place))
                for item, at in zip(batch.items(), offsets, strict=False)
            )
            self._sent_something()

        operator._sinks[port], operator._batch_sinks[port] = keep, keep_each  # noqa: SLF001 - outputs are bound there
        operator._control_sinks[port] = self.controls[port].append  # noqa: SLF001

    def _sent_something(self) -> None:
        self._end_if_abandoned()
        if self.reading is not None:
            self.reading.take_turn()

    @property
    def origin(self) -> Origin:
        """The origin of the items that it sends now."""
        if self.reading is None:
            return self.taking
        now = self.reading.now
        return Origin(now.order, now.element, place=self.reading.place)

    def _item_origin(self) -> tuple[Any, int | None]:
        return self.origin.element, self.origin.offset

    def progress(self) -> tuple[int, int, Progress | None]:
        """A value that changes while items are processed; called by another thread."""
        reading = self.reading
        rows, position = (0, None) if reading is None else reading.progress()
        return self.outcome.moves + rows, sum(map(len, self.sent.values())), position

    # ---- its life

    def begin(self, context: Context, committed: int, *, begins: bool) -> None:
        """Set it up, report the last committed window, and begin its own window if `begins`."""
        with code_of(self.name):
            self.operator.setup(context)
            self.open.callback(self.operator.teardown)
            self.operator.activate(context)
            self.open.callback(self.operator.deactivate)
            if committed:
                self.operator.checkpointed(committed)
                self.operator.committed(committed)
            if begins:
                self.operator.begin_window(context.window_id)

    def end(self) -> None:
        """Deactivate it and tear it down, if it was set up."""
        with code_of(self.name):
            self.open.close()

    def abandon(self, window_id: int) -> None:
        """End it after a failure. Log what this raises: the caller reports the failure."""
        try:
            self.open.close()
        except Exception:  # the caller raises the first failure
            name = type(self.operator).__name__
            _logger.exception("%s could not be torn down after window %d failed", name, window_id)

    # ---- what it is given

    def take(self, port: str, placed: Iterable[Placed], keying: Keying) -> None:
        """Deliver all items of an input: one by one, or in batches if it has only a method for batches."""
        declared = input_ports(type(self.operator))[port]
        if callable(getattr(self.operator, handler_name(declared), None)):
            handle, keyed = handler_of(self.operator, port), self._keyed()
            for each in placed:
                self._at(each.origin)
                try:
                    # Within the `try`: a key that cannot be computed is the failure of this item.
                    for state in keyed:
                        state.current_code = keying.code(each.item)
                    handle(each.item)
                except Exception as error:
                    note(error, self.name, each.item)
                    raise
                for state in keyed:
                    state.current_code = None
        else:
            by_batch = batch_handler_of(self.operator, port)
            assert by_batch is not None, f"{type(self.operator).__name__} has no method for {port}"
            # A traced attempt takes items one by one: if the process ends, the trace names one record.
            for _, together in groupby(placed, lambda each: each.together if self.trace is None else id(each)):
                self._take_batch(list(together), by_batch)
        self._at(UNKNOWN)

    def _take_batch(self, together: Sequence[Placed], by_batch: Callable[[Any], None]) -> None:
        """Deliver a batch. If that fails, deliver parts of it again, to find the item that fails."""

        def hand_on(these: Sequence[Placed]) -> None:
            for state in self._keyed():
                state.code_of = routing_code
            batch: Batch[Any] = Batch.of([each.item for each in these])
            starts = [each.origin.offset for each in these if each.origin.offset is not None]
            by_batch(batch.placed(lambda: starts) if len(starts) == len(these) else batch)
            for state in self._keyed():
                state.code_of = None

        self._at(together[0].origin._replace(offset=None) if len(together) > 1 else together[0].origin)
        try:
            hand_on(together)
        except Exception as error:
            # dagkit failed, whatever the record is: no other part would show which one.
            if isinstance(error, RunFailure) and not error.caused_by_author:
                note(error, self.name)
                raise
            failing = failing_among(len(together), lambda part: hand_on(together[part]), error)
            if failing is None:
                note(error, self.name)
            else:
                self._at(together[failing].origin)
                note(error, self.name, together[failing].item)
            raise

    def _keyed(self) -> list[Keyed[Any, Any]]:
        """Its state by key. The state needs the routing code of each item."""
        declared = declared_state(type(self.operator))
        return [getattr(self.operator, name) for name, kind in declared.items() if isinstance(kind, KeyedState)]

    def _end_if_abandoned(self) -> None:
        """Raise WindowAbandoned if the window is abandoned; called between two records."""
        if self.closed.is_set():
            raise WindowAbandoned

    def _at(self, origin: Origin) -> None:
        self._end_if_abandoned()
        self.taking = origin
        self.outcome.moves += 1
        if self.trace is not None:
            self.trace.enter(self.name)
            self.trace.note(_place_of(origin))
        if self.staging is not None:
            self.staging.order = origin.order

    def take_controls(self, arrived: Iterable[Stamped]) -> None:
        """Deliver each control tuple once, those for the end of the window last; forward those it does not handle."""
        once: dict[str, Stamped] = {}
        for stamped in arrived:
            once.setdefault(stamped.stamp, stamped)
        in_order = sorted(once.values(), key=lambda each: each.control.delivery is Delivery.END_WINDOW)
        for stamped in in_order:
            with code_of(self.name):
                is_handled = self.operator.process_control(stamped.control)
            if not is_handled:
                for leaving in self.controls.values():
                    leaving.append(stamped)


def _place_of(origin: Origin) -> TracedPlace | None:
    """The place of a record, as exactly as it is known."""
    if origin.place is None or origin.offset is None or not origin.place.holds([origin.offset]):
        return origin.place
    return origin.place.around(origin.offset, origin.offset)
