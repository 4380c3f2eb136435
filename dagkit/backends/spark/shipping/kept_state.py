"""Large state on its way to the workers: what did not change is sent once, and kept where it was received.

A mapping that is large travels as its layers (`Overlay`), each a broadcast of its own. An executor keeps a broadcast,
and a worker process keeps what it has read of it. So a window sends the layers that are new: what earlier windows
changed. Connect has no broadcasts: there, each window sends all state.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dagkit.api.state import KeyedState, declared_state
from dagkit.engine.program.differences import CHANGED, NEW, Change, difference
from dagkit.engine.program.program import Program
from dagkit.engine.worker.protocol import SlotState
from dagkit.ground.overlays import Layer, Overlay

if TYPE_CHECKING:
    from pyspark import Broadcast, SparkContext

Kept = Mapping[int, "Broadcast[Layer]"]
"""Broadcasts by number."""
LARGE = 10_000
"""Keyed state with more keys is sent in layers, and layers with more keys are broadcasts."""


@dataclass(frozen=True, slots=True)
class SentOverlay:
    """A mapping on its way to a worker: its layers, or the numbers of those that are broadcasts."""

    layers: tuple[Layer | int, ...]
    length: int

    def received(self, kept: Kept) -> Overlay:
        """The mapping, with the layers that this worker has kept, or reads now."""
        layers = tuple(kept[each].value if isinstance(each, int) else each for each in self.layers)
        return Overlay.of_layers(layers, self.length)


SentState = Mapping[str, Mapping[str, Any]]
"""The state of one slot, by operator and name; large mappings are a `SentOverlay`."""


class KeptState:
    """The layers that workers keep for one backend."""

    def __init__(self, context: "SparkContext") -> None:
        self._context = context
        self._kept: dict[int, tuple[Layer, Broadcast[Layer]]] = {}
        """The broadcasts by the identities of their layers."""

    def sent(self, states: Mapping[tuple[int, int], SlotState]) -> tuple[Mapping[tuple[int, int], SentState], Kept]:
        """The state of each slot as it is sent, and the broadcasts that it needs, by number. Destroy all others."""
        used: dict[int, tuple[Layer, Broadcast[Layer]]] = {}

        def number(layer: Layer) -> Layer | int:
            if len(layer.set) <= LARGE:
                return layer
            # The layer is kept beside its broadcast, so no other can get its identity. A layer of a mapping that is no
            # overlay yet is made for each window, and sent again.
            key = id(layer.set)
            used[key] = self._kept.get(key) or (layer, self._context.broadcast(layer))
            return key

        def one(value: Any) -> Any:
            if not isinstance(value, Overlay):
                return value
            return SentOverlay(tuple(map(number, value.layers)), len(value))

        sent = {at: _each(state, one) for at, state in states.items()}
        for key, (_, broadcast) in self._kept.items():
            if key not in used:
                broadcast.destroy()
        self._kept = used
        return sent, {key: broadcast for key, (_, broadcast) in used.items()}

    def end(self) -> None:
        """Destroy all broadcasts."""
        # If Spark itself has ended, nothing of the broadcasts is left.
        with suppress(Exception):
            self.sent({})


def overlaid(state: SlotState, program: Program) -> SlotState:
    """The state of a slot, with large keyed state as overlays, to which changes are applied at their own cost."""
    found = dict(state)
    for name in state.keys() & program.operators.keys():
        declared = declared_state(type(program.operators[name][0]))
        keyed = {n for n, kind in declared.items() if isinstance(kind, KeyedState)}
        found[name] = {n: _overlay(value) if n in keyed else value for n, value in state[name].items()}
    return found


def _overlay(value: Any) -> Any:
    return Overlay.of(value) if isinstance(value, Mapping) and len(value) > LARGE else value


def received(state: SentState, kept: Kept) -> SlotState:
    """The state of a slot, from the form in which it was sent."""
    return _each(state, lambda value: value.received(kept) if isinstance(value, SentOverlay) else value)


def changed_in(before: SlotState, after: SlotState) -> Change | None:
    """The change of a slot's state: of keyed state, what changed; of other state, which may be the same object, all."""
    changed: dict[str, Change] = {}
    for name, saved in after.items():
        if name not in before:
            changed[name] = {NEW: saved}
            continue
        changes = {n: _changed(before[name].get(n), value) for n, value in saved.items()}
        changed[name] = {CHANGED: {n: change for n, change in changes.items() if change is not None}}
    return {CHANGED: changed} if changed else None


def _changed(before: Any, after: Any) -> Change | None:
    return difference(before, after) if isinstance(after, Overlay) else {NEW: after}


def _each(state: SentState, convert: Callable[[Any], Any]) -> dict[str, dict[str, Any]]:
    """The same with each value converted."""
    return {name: {n: convert(value) for n, value in saved.items()} for name, saved in state.items()}
