"""Deliver control tuples to one operator: each once, at its time, and pass them on unless the operator does."""

from collections.abc import Callable

from dagkit.api.controls import Delivery, Stamped
from dagkit.api.operators import Operator
from dagkit.engine.program.entrances import code_of


class Controls:
    """The control tuples that reach one operator in one window."""

    def __init__(self, name: str, operator: Operator, flush: Callable[[str], None]) -> None:
        self._name = name
        self._operator = operator
        self._flush = flush
        self._seen: set[str] = set()
        self._waiting: list[Stamped] = []

    def take(self, stamped: Stamped) -> None:
        """Deliver a control tuple, at once or at the end; ignore a second copy from another partition."""
        if stamped.stamp in self._seen:
            return
        self._seen.add(stamped.stamp)
        if stamped.control.delivery is Delivery.END_WINDOW:
            self._waiting.append(stamped)
        else:
            self._deliver(stamped)

    def end(self) -> None:
        """Deliver the control tuples that waited until all items were processed."""
        waiting, self._waiting = self._waiting, []
        for stamped in waiting:
            self._deliver(stamped)

    def _deliver(self, stamped: Stamped) -> None:
        self._flush(self._name)  # items that came before it are processed before it
        with code_of(self._name):
            is_handled = self._operator.process_control(stamped.control)
        if not is_handled:
            for sink in self._operator._control_sinks.values():  # noqa: SLF001 - outputs are bound there
                sink(stamped)
