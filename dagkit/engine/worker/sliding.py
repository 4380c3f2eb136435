"""Sliding windows: an operator fills panes, and each slide sends the items of the last panes of one window."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from dagkit.engine.program.codec import JsonCodec
from dagkit.engine.program.program import Sliding
from dagkit.engine.worker.instances import Receiver
from dagkit.schema.batch import Batch


class Panes:
    """The panes that are still in the window, and the one that is being filled."""

    def __init__(self, sliding: Sliding, kept: Mapping[str, Any], sinks: Sequence[Receiver] = ()) -> None:
        self.sliding = sliding
        self._sinks = sinks
        self._written = JsonCodec(sliding.port, sliding.payload)
        panes = kept.get("panes", ())
        self._panes: list[list[Any]] = [[self._written.back(item) for item in pane] for pane in panes] or [[]]
        self._kept = len(self._panes[-1])
        self.added = 0
        """How many items this streaming window added; set by `turn`."""

    def add(self, item: Any) -> None:
        """Add an item to the present pane."""
        self._panes[-1].append(item)

    def turn(self, window_id: int) -> list[Any]:
        """End a streaming window. Return the items of all panes if the window slides now, else none."""
        sliding = self.sliding
        self.added = len(self._panes[-1]) - self._kept
        if window_id % sliding.pane:
            return []
        out = [item for pane in self._panes for item in pane] if window_id % sliding.step == 0 else []
        self._panes.append([])
        del self._panes[: -(sliding.length // sliding.pane)]
        return out

    def slide(self, window_id: int) -> None:
        """End a streaming window, and send the items of all panes if the window slides now."""
        items = self.turn(window_id)
        for sink in self._sinks if items else ():
            sink.batch(Batch.of(items))

    def saved(self) -> dict[str, JsonValue]:
        """The panes in the form of a partition's saved state."""
        return {"panes": [[self._written.of(item) for item in pane] for pane in self._panes]}


def together(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the panes of several partitions by age."""
    kept = [list(state.get("panes", ())) for state in states]
    longest = max(map(len, kept), default=0)
    # The last pane of each partition is its newest.
    padded = [[[]] * (longest - len(panes)) + panes for panes in kept]
    return {"panes": [[item for pane in same_age for item in pane] for same_age in zip(*padded, strict=True)]}


def slider_name(operator: str, port: str) -> str:
    """The name of an output's panes in the saved state."""
    return f"{operator}.{port}#slider"
