"""Overlays: large mappings of JSON values, each of which shares with an earlier one what did not change. Pure."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")
Entries = Mapping[str, Any]
Measure = Callable[[Any], int]
"""A number of a value. Equal functions give equal numbers."""
LARGE = 1000
"""A mapping with more names is worth an overlay."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What changed: first these names went, then these values were set."""

    gone: Collection[str]
    set: Entries
    computed: dict[str, tuple[Measure, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was computed last of the layer, which does not change, nor do the layers below it while it lies on them."""

    def once(self, what: str, measure: Measure, compute: Callable[[], T]) -> T:
        """The result of a function, which is called again only for another measure."""
        known, found = self.computed.get(what, (None, None))
        if found is None or known != measure:
            found = compute()
            self.computed[what] = measure, found
        return cast("T", found)

    def in_order(self, measure: Measure) -> tuple["array[int]", list[str]]:
        """The numbers of the values, in order, and the names of these values."""
        numbers = {name: measure(value) for name, value in self.set.items()}
        names = sorted(numbers, key=numbers.__getitem__)
        return array("q", map(numbers.__getitem__, names)), names

    def __reduce__(self) -> Any:
        return Layer, (self.gone, self.set)


class Overlay(Mapping[str, Any]):
    """A mapping that is never changed. A changed one costs only its changes, and records them.

    A layer takes over the layers below it that are at most twice as long as itself: there are about log2(n) of them.
    """

    __slots__ = ("before", "last", "layers", "length", "version")

    def __init__(self, layers: tuple[Layer, ...], length: int, version: object, before: object, last: Layer) -> None:
        self.layers = layers
        self.length = length
        self.version = version
        """Identifies this mapping, among those that changes lead to."""
        self.before = before
        """The version that `last` was a change of; `_FIRST` if it was none."""
        self.last = last

    @classmethod
    def of(cls, entries: Entries) -> "Overlay":
        """An overlay with these entries, which are not copied; itself if it is one."""
        if isinstance(entries, Overlay):
            return entries
        return cls((Layer((), entries),), len(entries), entries, _FIRST, _NOTHING)

    @classmethod
    def of_layers(cls, layers: tuple[Layer, ...], length: int) -> "Overlay":
        """An overlay with these layers and so many entries, which is no change of another mapping."""
        return cls(layers, length, object(), _FIRST, _NOTHING)

    def changed(self, gone: Collection[str], entries: Entries) -> "Overlay":
        """The same without these names, then with these entries."""
        length = self.length - sum(name in self for name in gone)
        length += sum(name in gone or name not in self for name in entries)
        last = Layer(gone, entries)
        layers, new = list(self.layers), last
        while layers and len(layers[-1].gone) + len(layers[-1].set) <= 2 * (len(new.gone) + len(new.set)):
            new = _together(layers.pop(), new, is_lowest=not layers)
        return Overlay((*layers, new), length, object(), self.version, last)

    def change_since(self, before: object) -> Layer | None:
        """What changed since an earlier mapping; None if that is not known without a comparison."""
        version = before.version if isinstance(before, Overlay) else before
        if version is self.version:
            return _NOTHING
        return self.last if version is self.before else None

    def up_to(self, most: int, measure: Measure) -> Iterator[str]:
        """The names of the values whose number is at most this one. It costs what it finds, and layers that are new."""
        for at, layer in enumerate(self.layers):
            numbers, names = layer.once("order", measure, partial(layer.in_order, measure))
            above = self.layers[at + 1 :]
            for name in names[: bisect_right(numbers, most)]:
                if not any(name in upper.set or name in upper.gone for upper in above):
                    yield name

    def total(self, measure: Measure) -> int:
        """The sum of the numbers of all values. It costs the layers that are new."""
        return sum(
            layer.once("total", measure, partial(self._added, at, measure)) for at, layer in enumerate(self.layers)
        )

    def _added(self, at: int, measure: Measure) -> int:
        """What a layer adds to the total of those below it."""
        layer, below = self.layers[at], Overlay.of_layers(self.layers[:at], 0)
        replaced = (below[name] for name in {*layer.gone, *layer.set} if name in below)
        return sum(map(measure, layer.set.values())) - sum(map(measure, replaced))

    def plain(self) -> Entries:
        """This mapping; as a dict, if it is not large."""
        return self if self.length > LARGE else self.whole()

    def __getitem__(self, name: str) -> Any:
        for layer in reversed(self.layers):
            if name in layer.set:
                return layer.set[name]
            if name in layer.gone:
                break
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        for layer in reversed(self.layers):
            if name in layer.set:
                return True
            if name in layer.gone:
                return False
        return False

    def __len__(self) -> int:
        return self.length

    def whole(self) -> dict[str, Any]:
        """All entries: a name stays at its place while it is there."""
        entries = dict(self.layers[0].set) if self.layers else {}
        for layer in self.layers[1:]:
            for name in layer.gone:
                entries.pop(name, None)
            entries.update(layer.set)
        return entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.layers[0].set if len(self.layers) == 1 else self.whole())

    def __reduce__(self) -> Any:
        return Overlay.of, (self.whole(),)

    def __repr__(self) -> str:
        return f"Overlay({self.whole()!r})"


_NOTHING = Layer((), {})
# Not None: a large mapping that is new would count as unchanged beside none.
_FIRST: Final = object()
"""The version before an overlay that is no change of another mapping: no mapping has it."""


def _together(lower: Layer, upper: Layer, *, is_lowest: bool) -> Layer:
    """Two layers as one. A name that went and came again is behind the others, as in a dict."""
    entries = dict(lower.set)
    for name in upper.gone:
        entries.pop(name, None)
    entries.update(upper.set)
    # Below the lowest layer there is nothing that could be gone.
    return Layer(() if is_lowest else {*lower.gone, *upper.gone}, entries)
