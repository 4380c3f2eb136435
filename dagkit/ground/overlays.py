"""Overlays: large mappings of JSON values, each of which shares with an earlier one what did not change. Pure."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

Entries = Mapping[str, Any]
LARGE = 1000
"""A mapping with more names is worth an overlay."""


class Layer(NamedTuple):
    """What changed: first these names went, then these values were set."""

    gone: Collection[str]
    set: Entries


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
