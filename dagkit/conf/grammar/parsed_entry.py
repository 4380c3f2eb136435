"""An entry with the meaning of its key: the form of a setting from its line in a file to an operator's field."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dagkit.api.configuration import Entry, Origin, Source
from dagkit.conf.grammar.names import NamePattern, folded
from dagkit.conf.grammar.property_keys import (
    Address,
    AttributeRef,
    Keyword,
    Malformed,
    PropertyPath,
    canonical,
    is_variable,
    parse_key,
)
from dagkit.errors import Where


@dataclass(frozen=True, eq=False)
class ParsedEntry(Entry):
    """A key and its value from one place.

    Reading a file gives the place, resolving references gives the value, and `Settings` give the position among the
    entries for one application. The value is None if the place has none: then another source must set one.
    """

    parsed: Address | Malformed | None
    """What the key means; None if it has no prefix of dagkit."""
    final: bool = False
    """Whether the file forbids stronger sources to set another value."""
    position: int = 0
    """Its position among all entries, those of the strongest source last."""
    of_application: bool = False
    """Whether it is in the section that names this application."""

    @classmethod
    def of(
        cls, key: str, value: Any, where: Where, source: Source = Source.FILE, *, final: bool = False
    ) -> "ParsedEntry":
        """The entry of a key that is written at this place."""
        return cls(key, value, Origin(source, where, key), parse_key(key), final)

    # -- what it sets ------------------------------------------------------------------------------------------------

    @property
    def address(self) -> Address:
        """What the key means. `Settings` set aside the keys that mean nothing."""
        assert isinstance(self.parsed, Address), "only keys with a meaning reach an application"
        return self.parsed

    @property
    def path(self) -> PropertyPath:
        """The property that it sets."""
        assert isinstance(self.address.sets, PropertyPath), "only properties are set on a component"
        return self.address.sets

    @property
    def attribute(self) -> AttributeRef:
        """The attribute that it sets."""
        assert isinstance(self.address.sets, AttributeRef), "its index holds attributes only"
        return self.address.sets

    @property
    def word(self) -> str:
        """The word of the grammar that it sets."""
        assert isinstance(self.address.sets, Keyword), "a template matches by a word of the grammar"
        return self.address.sets.word

    @property
    def name(self) -> NamePattern:
        """The stream or the template that it names."""
        assert self.address.name is not None, "streams and templates have names"
        return self.address.name

    @property
    def shown(self) -> str:
        """The value in a message: without a secret."""
        return repr(self.value) if self.origin.shown is None else self.origin.shown

    # -- which entries set the same ----------------------------------------------------------------------------------

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """Equal for two keys that set the same thing."""
        if not isinstance(self.parsed, Address):
            return (canonical(self.key),)
        return tuple(map(folded, self.parsed.identity)) if is_variable(self.key) else self.parsed.identity

    @cached_property
    def bearer(self) -> tuple[str, ...]:
        return self.parsed.bearer if isinstance(self.parsed, Address) else self.identity

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """The bearer as environment variables spell it: the index under which related keys are found."""
        return tuple(map(folded, self.bearer))

    @cached_property
    def way(self) -> tuple[str, ...]:
        return self.parsed.way if isinstance(self.parsed, Address) else ()

    def sets_the_same_as(self, other: "ParsedEntry") -> bool:
        """Whether both set the same thing. Names in environment variables compare by their folded form."""
        return len(self.way) == len(other.way) and self.touches(other)

    def touches(self, other: "ParsedEntry") -> bool:
        """Whether one sets the same as the other, or a part of it, or contains it, in any spelling."""
        length = min(len(self.way), len(other.way))
        if is_variable(self.key) or is_variable(other.key):
            # BLOCK_SIZE in a variable is `blockSize` or `block_size`, so underscores do not count.
            one, two = (tuple(folded(step).replace("_", "") for step in key.way[:length]) for key in (self, other))
            return self.folded == other.folded and one == two
        return self.bearer == other.bearer and self.way[:length] == other.way[:length]
