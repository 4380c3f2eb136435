"""The kinds of operator. A good operator is configuration plus pure functions; the engine keeps the state."""

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, ClassVar, Generic, TypeVar

from dagkit.api.component import Component
from dagkit.api.controls import Control
from dagkit.api.ports import InputPort, Outlet, OutputPort, input_ports, output_ports
from dagkit.errors import RunFailure
from dagkit.schema.batch import Batch

T = TypeVar("T")


class Operator(Component):
    """A vertex of the graph. Its fields are properties, its ports are declared on the class.

    Every callback runs on one thread, in this order: `setup`, `activate`; for each window `begin_window`, the items,
    `end_window`; `before_checkpoint`, and once the state is saved `checkpointed`; once a window can never come back
    `committed`; `deactivate` and `teardown` at the end. On the workers each streaming window may find the operator in
    another process: there it is set up for every window, and learns in the next one what became of the last. An input
    operator lives on the driver as long as the launch does, and its windows are looks: see `InputOperator`.
    """

    partitionable: ClassVar[bool] = True
    """Whether the operator may run as several partitions."""
    checkpointable_within_app_window: ClassVar[bool] = True
    """Whether its state may be saved in the middle of an application window.

    It always is: on the workers an operator of which this is False cannot have longer windows than one.
    """
    stateless: ClassVar[bool] = False
    """Whether there is no state to save at all."""
    served_by_engine: ClassVar[bool] = False
    """Whether the engine itself takes the items; otherwise a method does, and a missing one is reported."""

    def setup(self, context: Any) -> None:
        """Called before each streaming window on the workers, where it may be another process than the one before; in
        an input operator once in a launch.
        """

    def activate(self, context: Any) -> None:
        """Called after `setup`, when windows are about to come."""

    def begin_window(self, window_id: int) -> None:
        """Called before the items of a window, by the id of its first streaming window; in an input operator, before
        each look.
        """

    def process_control(self, control: Control) -> bool:  # noqa: ARG002 - for overrides
        """Called with each control tuple that comes; True says that this operator itself sends on what is to go on."""
        return False

    def end_window(self) -> None:
        """Called after the items of a window; in an input operator, after each look."""

    def drained(self) -> None:
        """Called before `end_window` in the last window of a launch that ends by itself: nothing more comes for now."""

    def before_checkpoint(self, window_id: int) -> None:
        """Called before the state at the end of this streaming window is saved."""

    def checkpointed(self, window_id: int) -> None:
        """Called after the state at the end of this streaming window was saved; on the workers, in a later one."""

    def committed(self, window_id: int) -> None:
        """Called when no streaming window up to this one can ever be run again; on the workers, in a later one."""

    def deactivate(self) -> None:
        """Called before `teardown`, when no window comes any more to this instance."""

    def teardown(self) -> None:
        """Called at the end of what `setup` began: after each streaming window on the workers, and in an input
        operator at the end of a launch; also where these failed.
        """


class InputOperator(Operator):
    """A root of the graph: it makes items, or finds work, without an input.

    It looks for more when it is due and the workers could do with more work. A look is `begin_window`, `emit_tuples`,
    `handle_idle_time` where that emitted nothing, `end_window` and `before_checkpoint`, with the id of the window that
    will be given what is found. After a look in vain, the next one has that id again; there is none for windows that
    have enough to do with what was found before.
    """

    def emit_tuples(self) -> None:
        """Called once in each look, to emit what there is; `Shutdown` says that nothing will ever come again."""

    def handle_idle_time(self) -> None:
        """Called in a look in which `emit_tuples` emitted nothing; it may emit, too."""

    def looks_again_in_millis(self) -> int | None:
        """How long nothing new is to be expected, after a look in which nothing was emitted; None: as usual."""
        return None


class RowOperator(Operator):
    """One input, one output, a pure function between them: the form that fuses best."""

    @abstractmethod
    def process(self, item: Any) -> Iterator[Any]:
        """Yield what one item becomes; nothing drops it."""


class Unifier(Operator, Generic[T]):
    """Merges what several partitions of one operator sent from one port, window by window."""

    parts = InputPort[T]()
    unified = OutputPort[T]()

    @abstractmethod
    def process(self, item: T) -> None:
        """Take one item of any partition."""


class DelayOperator(Operator, Generic[T]):
    """Hands an item of window n on in window n + 1, so that a loop has a beginning."""

    kind = "dagkit.delay/1"
    served_by_engine = True
    input = InputPort[T]()
    output = OutputPort[T]()

    def first_window(self) -> Iterator[T]:
        """What flows in the first window, when nothing has come round yet."""
        return iter(())


def handler_name(port: InputPort[Any]) -> str:
    """The method that takes what flows into a port: the decorated one, else `process`."""
    return port.handler or "process"


def handler_of(operator: Operator, port: str) -> Callable[[Any], None]:
    """What takes an item at an input: the method that the port names, else `process`.

    A method that yields has what it yields sent from the operator's main output.
    """
    method = getattr(operator, handler_name(input_ports(type(operator))[port]))
    return _sending(operator, method)


def batch_handler_of(operator: Operator, port: str) -> "Callable[[Batch[Any]], None] | None":
    """What takes many items at once at an input, where the operator offers that."""
    name = batch_handler_name(type(operator), port)
    return None if name is None else _sending(operator, getattr(operator, name))


def batch_handler_name(operator: type[Operator], port: str) -> str | None:
    """The method that takes batches: the decorated one, else `process_batch` beside a plain `process`.

    An inherited batch method does not count if the class overrides the method for items.
    """
    declared = input_ports(operator)[port]
    if declared.batch_handler is None and declared.handler is not None:
        return None
    name, single = declared.batch_handler or "process_batch", handler_name(declared)
    for ancestor in operator.__mro__:
        if name in vars(ancestor):
            return name
        if single in vars(ancestor):
            return None
    return None


def _sending(operator: Operator, method: Callable[[Any], Any]) -> Callable[[Any], None]:
    send = sending(operator, method.__name__)

    def handle(taken: Any) -> None:
        made = method(taken)
        if made is not None:
            send(made)

    return handle


class NotYielded(RunFailure):
    """A handler returned an item that it should have yielded. The problem names the handler; no traceback is needed."""

    code = "item-unyielded"


def sending(operator: Operator, method: str) -> Callable[[Any], None]:
    """What sends from the main output what a method yields, or the batch that it gives back."""
    outlet = main_outlet(operator)

    def send(made: Any, self: Operator = operator) -> None:  # whose failure it is, if it is one
        whole = isinstance(made, Batch)
        if not whole and not isinstance(made, Iterator):
            raise _not_yielded(type(self).__name__, method, made)
        assert outlet is not None, f"{type(operator).__name__}.{method} yields, and there is no main output"
        for one in (made,) if whole else made:
            if isinstance(one, Batch):
                outlet.emit_batch(one)
            else:
                outlet.emit(one)

    return send


def _not_yielded(operator: str, method: str, made: object) -> NotYielded:
    """Return the failure of a handler that returned this. A text is refused, too: it would be sent letter by letter."""
    if isinstance(made, Coroutine):
        made.close()
        return NotYielded(f"{operator}.{method} is `async def`, which is never awaited", f"write `def {method}`")
    return NotYielded(
        f"{operator}.{method} returned {made!r:.60}, and what it makes is taken from an iterator",
        "write `yield item` for each item, not `return item`",
    )


def main_outlet(operator: Operator) -> Outlet[Any] | None:
    """The outlet of the only output, or of the one that is marked as main."""
    ports = list(output_ports(type(operator)).values())
    marked = [port for port in ports if port.main]
    chosen = ports if len(ports) == 1 else marked
    return Outlet(operator, chosen[0]) if len(chosen) == 1 else None
