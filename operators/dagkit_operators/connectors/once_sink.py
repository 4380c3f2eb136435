"""A sink that an author writes in one class: a system gets the items of each window once, after its commit."""

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic

from pydantic import NonNegativeFloat, PositiveInt, PrivateAttr
from typing_extensions import TypeVar

from dagkit import ExternalOutput, InputPort, Operator, StagedWindow, Unavailable
from dagkit.api.adapters import adapter_of
from dagkit.api.tagged import Unwritable
from dagkit.errors import RunFailure
from dagkit_operators.connectors.answers import answered

T = TypeVar("T", default=Any)


@dataclass(frozen=True, slots=True)
class Delivery(Generic[T]):
    """The items of one committed window, for one sink."""

    writer: str
    """The name of the sink: equal in all launches of an application, and different in one that starts over."""
    window_id: int
    _window: StagedWindow
    _item_type: type | None
    _sent: set[str] = field(default_factory=set)
    """The keys of the pieces that this process has sent."""

    @property
    def key(self) -> str:
        """The same for each attempt at this delivery, and for no other one: an idempotency key."""
        return f"{self.writer}-{self.window_id}"

    def items(self) -> Iterator[T]:
        """The items, slot by slot, in the order in which each slot received them. It may be called again."""
        adapter = adapter_of(self._item_type or Any)
        for entry in self._window.entries():
            yield from map(adapter.load, json.loads(entry))

    def pieces(self, most: int) -> Iterator[tuple[str, list[T]]]:
        """The items in lists of so many, each with an idempotency key of its own: it names its place in the window."""
        items, start = self.items(), 0
        while piece := list(islice(items, most)):
            yield f"{self.key}-{start}-{start + len(piece)}", piece
            start += len(piece)

    def send_pieces(self, most: int, send: Callable[[str, list[T]], object]) -> None:
        """Call `send` with the key and the items of each piece. A later attempt continues with the one that failed."""
        for key, piece in self.pieces(most):
            if key not in self._sent:
                send(key, piece)
                self._sent.add(key)


class Delivering:
    """The external system of a sink, which looks for a window before it writes it."""

    def __init__(self, sink: "OnceSink[Any]") -> None:
        self._sink = sink

    def prepare(self, writer: str) -> None:
        with answered():
            self._sink.connect(writer)

    def apply(self, window: StagedWindow) -> None:
        sink = self._sink
        before = len(sink._sent)  # noqa: SLF001 - as below
        try:
            with answered():
                if sink.last_window(window.writer) < window.window_id:
                    sink.write(Delivery(window.writer, window.window_id, window, sink.item_type, sink._sent))  # noqa: SLF001
        except Unavailable as away:
            away.has_progressed = len(sink._sent) > before  # noqa: SLF001 - as below
            raise
        # The sink has them, since each attempt has another system: a delivery of forty requests to a server that
        # refuses one in five would otherwise begin again each time, and not end.
        sink._sent.clear()  # noqa: SLF001 - they are of this window

    def close(self) -> None:
        self._sink.disconnect()


class OnceSink(Operator, Generic[T]):
    """Gives the items of each window to a system after the window's commit. A subclass writes them.

    After a crash the same window may be delivered again. A system with transactions records `delivery.writer` and
    `delivery.window_id` with the items, and returns the window in `last_window`; a server gets `delivery.key` as its
    idempotency key. If the system does not answer, or answers that it cannot now, the sink connects and delivers again
    after a pause: for errors of connections, for answers such as 429 and 503 that urllib, requests or httpx raise, and
    for `Unavailable`. These methods run on the driver.
    """

    input = InputPort[T]()
    staged = ExternalOutput(Delivering, waits_seconds=lambda sink: sink.waits_seconds)

    item_type: type | None = None
    """The class of the items; None: that of the stream."""
    waits_seconds: NonNegativeFloat | None = None
    """How long a run waits for a system that is away before it fails; None: until it is stopped."""
    batch_items: PositiveInt = 1000
    """The most items that are staged together."""

    _gathered: list[Any] = PrivateAttr(default_factory=list)
    _sent: set[str] = PrivateAttr(default_factory=set)
    """The keys of the pieces of the current delivery that this process has sent."""

    def connect(self, writer: str) -> None:
        """Connect to the system, and create what is missing. A launch calls it before it reads anything."""

    def last_window(self, writer: str) -> int:  # noqa: ARG002 - for subclasses
        """The last window that the system has of this writer; 0 if it has none, or cannot record it."""
        return 0

    @abstractmethod
    def write(self, delivery: Delivery[T]) -> None:
        """Make the items of a window visible; in the same transaction, record the window if the system can."""

    def disconnect(self) -> None:
        """Disconnect. It is called once for each `connect`, also after a failure."""

    def implied_properties(self, received: Mapping[str, Any]) -> Mapping[str, Any]:
        payload = received.get("input")
        return {"item_type": payload} if self.item_type is None and isinstance(payload, type) else {}

    def process(self, item: T) -> None:
        self._gathered.append(item)
        if len(self._gathered) >= self.batch_items:
            self._stage()

    def before_checkpoint(self, window_id: int) -> None:  # noqa: ARG002 - the same for every window
        # Not in `end_window`, which is not called in each streaming window, while each has an instance of its own.
        self._stage()

    def _stage(self) -> None:
        if self._gathered:
            adapter = adapter_of(self.item_type or Any)
            try:
                written = [adapter.dump(item) for item in self._gathered]
            except Unwritable as error:
                help_ = "set item_type to a dataclass or a pydantic model of values that have a JSON form"
                raise RunFailure(f"an item cannot be staged as JSON: {error}", help_, code="item-unwritable") from error
            self.staged.add(json.dumps(written).encode())
            self._gathered.clear()
