"""The base classes of operators. An operator has properties, ports and methods; the engine keeps its state."""

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Final, Generic, TypeVar

from dagkit.api.component import Component
from dagkit.api.controls import Control
from dagkit.api.ports import InputPort, Outlet, OutputPort, input_ports, output_ports
from dagkit.errors import RunFailure
from dagkit.schema.batch import Batch

T = TypeVar("T")


REJECTED: Final = "rejected"
"""The output of refused items, by convention. An operator fails rather than drop them."""
DROPPED: Final = "records_dropped"
"""The metric of readers that counts records that were read and not sent, by convention."""


class Rows(StrEnum):
    """The relation between the items that an operator receives and those that it sends in a window."""

    KEPT = "kept"
    """Each item leaves by exactly one output; that may be `rejected`."""
    FILTERED = "filtered"
    """Each item leaves by at most one output; the others are dropped."""
    EXPANDED = "expanded"
    """An item may become any number of items."""


class Operator(Component):
    """A vertex of the graph. Its fields are its properties, and its ports are declared on the class.

    All callbacks run on one thread, in this order:

    1. `setup` and `activate`.
    2. For each window: `begin_window`, the items, `end_window`, `before_checkpoint`.
    3. `checkpointed` after the state was saved, and `committed` once the window can never run again.
    4. `deactivate` and `teardown`.

    On workers, each streaming window may run in another process. Therefore `setup` to `teardown` are called for each
    streaming window, and `checkpointed` and `committed` in a later one. An input operator runs on the driver for the
    whole launch: see `InputOperator`.
    """

    partitionable: ClassVar[bool] = True
    """Whether the operator may have several partitions."""
    checkpointable_within_app_window: ClassVar[bool] = True
    """Whether its state may be saved in the middle of an application window.

    State is saved with every streaming window, so on workers an operator with False cannot have longer windows.
    """
    stateless: ClassVar[bool] = False
    """Whether the operator has no state to save."""
    served_by_engine: ClassVar[bool] = False
    """Whether the engine itself processes the items. If not, the compiler reports an input without a method."""
    rows: ClassVar[Rows | None] = None
    """What must hold for the number of items in each window, if anything. The engine checks it.

    A subclass that overrides `process` or `process_batch` does not inherit it.
    """

    uses_watermark: ClassVar[bool] = False
    """Whether the operator acts on `context.watermark`, such as to send the results of windows that have ended.

    The engine then runs a further window when that watermark has advanced, even without input.
    """
    follows_files: ClassVar[bool] = False
    """Whether the operator reads what is appended to the files that arrive, as TailFiles does.

    It would read a file twice that is sent to it twice. So an operator that discovers files learns of it by
    `Context.is_followed`.
    """

    @property
    def item_origin(self) -> tuple[Any, int | None]:
        """The element that the present item was read from, such as a block of a file, and its position if known.

        What is unknown is None. On Spark, both are known only if an output of the operator has `names_origins` and is
        connected, or if the element is read in the same slot.
        """
        origin = self._services.get("item_origin")
        known: tuple[Any, int | None] = (None, None) if origin is None else origin()
        return known

    def refused_payload(self, port: str, payload: Any) -> str | None:  # noqa: ARG002 - for overrides
        """What to change, if an input cannot take items of this type because of a property; None if it can.

        The compiler asks this in addition to the declared type of the port.
        """
        return None

    def sent_payload(self, port: str, received: Mapping[str, Any]) -> Any:  # noqa: ARG002 - for overrides
        """The type of the items that an output sends, if properties such as a function determine it; None if not.

        `received` is the type that arrives at each connected input. The compiler binds type variables of the declared
        type of the port to it. What the author wrote, as in `Map[str, int]`, takes precedence.
        """
        return None

    def implied_properties(self, received: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002 - for overrides
        """Values of properties that are not set and follow from the types of the items at the inputs.

        `received` is the type at each connected input: the type that the stream sends, or if that is unknown, the type
        that the author wrote, as in `ParquetPartWriter[Sale]`. The compiler sets these values.
        """
        return {}

    def windows_joined(self) -> int | None:
        """In how many windows, counting its own, an item can meet items of other inputs; None: in any, or never.

        The compiler warns if the inputs need not receive such items in windows so close to each other.
        """
        return None

    def gives_up(self) -> Iterable[str]:
        """What the operator does not guarantee because of its properties, for people who read its plan."""
        return ()

    @property
    def estimates_watermark(self) -> bool:
        """Whether the operator itself is a source of watermarks. If not, the watermarks of its inputs pass through."""
        return False

    @property
    def idle_after(self) -> timedelta | None:
        """The time without input after which a part of a source no longer holds back the watermark; None: never."""
        return None

    def current_watermark(self) -> datetime | None:
        """The watermark of the output: no later item should have an earlier event time. None: unknown, or as before.

        Called if the operator estimates watermarks: at the end of each streaming window in each partition; in an input
        operator, after each look.
        """
        return None

    def setup(self, context: Any) -> None:
        """Called before each streaming window on workers, possibly in a new process; in an input operator, once."""

    def activate(self, context: Any) -> None:
        """Called after `setup`, before the first window."""

    def begin_window(self, window_id: int) -> None:
        """Called before the items of a window, with the ID of its first streaming window.

        In an input operator, it is called before each look.
        """

    def process_control(self, control: Control) -> bool:  # noqa: ARG002 - for overrides
        """Called with each control tuple. Return False to let the engine send it on, True if the operator does so."""
        return False

    def end_window(self) -> None:
        """Called after the items of a window; in an input operator, after each look."""

    def drained(self) -> None:
        """Called before `end_window` in the last window of a launch that ends by itself."""

    def before_checkpoint(self, window_id: int) -> None:
        """Called before the state at the end of this streaming window is saved."""

    def checkpointed(self, window_id: int) -> None:
        """Called after the state at the end of this streaming window was saved; on workers, in a later window."""

    def committed(self, window_id: int) -> None:
        """Called once no streaming window up to this one can run again; on workers, in a later window."""

    def deactivate(self) -> None:
        """Called before `teardown`, after the last window of this instance."""

    def teardown(self) -> None:
        """Called after each streaming window on workers, and at the end of the launch in an input operator.

        It is also called if the window or the launch failed.
        """


class InputOperator(Operator):
    """An operator without inputs: it creates items, or discovers work such as files. It runs on the driver.

    The engine calls it when its next look is due and the workers need more work. A look consists of `begin_window`,
    `emit_tuples`, `handle_idle_time` if that emitted nothing, `end_window` and `before_checkpoint`, with the ID of the
    window that will receive the items. A look that emits nothing uses up no ID: the next one has the same. A window
    that has enough work from earlier looks has no look.
    """

    def emit_tuples(self) -> None:
        """Called once in each look, to emit the available items.

        Raise `Shutdown` to end the input forever. Raise `Unavailable` if the source does not answer: what this look
        emitted and changed in the state is undone, and the engine looks again after a pause, until the source answers.
        """

    def handle_idle_time(self) -> None:
        """Called in a look in which `emit_tuples` emitted nothing. It may emit items, too."""

    def looks_again_in_millis(self) -> int | None:
        """The time until the next look, after one that emitted nothing; None for the usual time."""
        return None

    @property
    def waits_for(self) -> str:
        """Why input that is there is not sent yet, such as "a.csv is still being written"; empty if there is none.

        `dagkit status` and the summary of a launch print it.
        """
        return ""

    @property
    def unsent(self) -> int:
        """How many elements, such as files, it has found and not sent yet: no backlog has them."""
        return 0

    @property
    def seen_ends(self) -> Mapping[str, int]:
        """Up to where there is something to read in sources without an end, by the `source` of their elements.

        What is not read up to there is their backlog. The engine asks for it at least once a second, also while no look
        is due; another thread of the operator may replace the mapping.
        """
        return {}

    @property
    def outage_limit_seconds(self) -> float | None:
        """How long the run waits for a source that is away, by `Unavailable`, before it fails; None: until it stops."""
        return None

    @property
    def holds_launch(self) -> bool:
        """Whether a launch that ends when its input is processed waits for the next look, also after one in vain."""
        return False

    @property
    def has_unsent(self) -> bool:
        """Whether the operator found input that it has not emitted yet. Until then, no watermark after it advances."""
        return False

    @property
    def has_unrecorded(self) -> bool:
        """Whether the ledger must record the state after a look that emitted nothing, or after `teardown`.

        The state is recorded with what a look emits, so a look that emits nothing adds nothing to the ledger.
        """
        return False


class RowOperator(Operator):
    """An operator with one input, one output and a pure function between them, which fuses best."""

    @abstractmethod
    def process(self, item: Any) -> Iterator[Any]:
        """Yield the items that replace one item; none to drop it."""


class Unifier(Operator, Generic[T]):
    """Merges the items that the partitions of one operator sent from one port, window by window."""

    parts = InputPort[T]()
    unified = OutputPort[T]()

    @abstractmethod
    def process(self, item: T) -> None:
        """Process an item of any partition."""


class DelayOperator(Operator, Generic[T]):
    """Sends each item of window n in window n + 1. Each loop in a graph must contain one."""

    kind = "dagkit.delay/1"
    served_by_engine = True
    input = InputPort[T]()
    output = OutputPort[T]()

    def first_window(self) -> Iterator[T]:
        """The items to send in the first window, before any item came through the loop."""
        return iter(())


def rows_of(operator: type[Operator]) -> Rows | None:
    """What a class declares about the number of its items; None if a subclass changed how they are processed."""
    for ancestor in operator.__mro__:
        declared = vars(ancestor).get("rows", "")
        # Any other value is a port of this name.
        if isinstance(declared, Rows | None):
            return declared
        if {"process", "process_batch"} & vars(ancestor).keys():
            return None
    return None


def handler_name(port: InputPort[Any]) -> str:
    """The name of the method that processes the items of a port: the decorated one, else `process`."""
    return port.handler or "process"


def handler_of(operator: Operator, port: str) -> Callable[[Any], None]:
    """A function that passes an item of an input to its method, and sends the items that this yields."""
    method = getattr(operator, handler_name(input_ports(type(operator))[port]))
    return _sending(operator, method)


def batch_handler_of(operator: Operator, port: str) -> "Callable[[Batch[Any]], None] | None":
    """A function that passes a batch to the batch method of an input; None if there is no such method."""
    name = batch_handler_name(type(operator), port)
    return None if name is None else _sending(operator, getattr(operator, name))


def batch_handler_name(operator: type[Operator], port: str) -> str | None:
    """The name of the method that processes batches: the decorated one, else `process_batch`; None if there is none.

    An inherited batch method does not count if the class overrides the method for single items.
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

    def handle(received: Any) -> None:
        result = method(received)
        if result is not None:
            send(result)

    return handle


def sending(operator: Operator, method: str) -> Callable[[Any], None]:
    """A function that sends the items that a method yields, or the batch that it returns, from the main output."""
    outlet = main_outlet(operator)

    def send(result: Any) -> None:
        whole = isinstance(result, Batch)
        if not whole and not isinstance(result, Iterator):
            raise _not_yielded(type(operator).__name__, method, result)
        assert outlet is not None, f"{type(operator).__name__}.{method} yields, but the operator has no main output"
        for item in (result,) if whole else result:
            if isinstance(item, Batch):
                outlet.emit_batch(item)
            else:
                outlet.emit(item)

    return send


def _not_yielded(operator: str, method: str, result: object) -> RunFailure:
    """The error for a result that is not an iterator. A returned text would be sent character by character."""
    if isinstance(result, Coroutine):
        # Else Python warns of a coroutine that was never awaited, beside the failure.
        result.close()
        return RunFailure(
            f"{operator}.{method} is `async def`, which is never awaited",
            f"write `def {method}`",
            code="item-unyielded",
        )
    return RunFailure(
        f"{operator}.{method} returned {result!r:.60}, which is not an iterator",
        "write `yield item` for each item, not `return item`",
        code="item-unyielded",
    )


def main_outlet(operator: Operator) -> Outlet[Any] | None:
    """The outlet of the only output, or of the one marked as main; None if no output is chosen by that."""
    ports = list(output_ports(type(operator)).values())
    marked = [port for port in ports if port.main]
    chosen = ports if len(ports) == 1 else marked
    return Outlet(operator, chosen[0]) if len(chosen) == 1 else None
