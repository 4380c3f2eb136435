"""Configuration as an application meets it: keys, their values, and where each value came from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeVar, overload

from pydantic import TypeAdapter

from dagkit.errors import Where

T = TypeVar("T")


class Source(IntEnum):
    """The kinds of place a value can come from, the weakest first."""

    DEFAULT = 0
    CODE = 1
    SITE_DEFAULT = 2
    SITE = 3
    APPLICATION = 4
    APPLICATION_NAMED = 5
    USER_SITE = 6
    PACKAGE_FILE = 7
    FILE = 8
    ENVIRONMENT = 9
    COMMAND_LINE = 10


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from, for reports and for `--origin`."""

    source: Source
    where: Where | None = None
    key: str | None = None
    shown: str | None = None
    """What to print instead of the value, where that is a secret."""

    def __str__(self) -> str:
        if self.source is Source.DEFAULT:
            return "default"
        if self.source is Source.CODE:
            return f"code at {self.where}" if self.where else "code"
        return f"{self.key} at {self.where}" if self.where else f"{self.key}"


DEFAULT = Origin(Source.DEFAULT)


@dataclass(frozen=True, slots=True)
class Entry:
    """One key as one source gave it."""

    key: str
    value: Any = field(repr=False)
    """Text, or a TOML value. After substitution; never shown where `secret`."""
    origin: Origin
    secret: bool = False
    shown: str | None = None
    """What to print instead of the value: the reference that a secret was given by."""


class Config(Mapping[str, Any]):
    """Every setting of a launch, strongest source last. As a mapping it holds the winning value of each key."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries = tuple(entries)
        self._winning = {entry.key: entry for entry in self.entries}
        self._asked: set[str] = set()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Config":
        """A configuration from plain values, as tests and notebooks give it."""
        return cls([Entry(key, value, Origin(Source.COMMAND_LINE, None, key)) for key, value in values.items()])

    def __getitem__(self, key: str) -> Any:
        self._asked.add(key)
        return self._winning[key].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._winning)

    def __len__(self) -> int:
        return len(self._winning)

    def __contains__(self, key: object) -> bool:
        self._asked.add(str(key))
        return key in self._winning

    @overload
    def read(self, key: str, as_type: type[T]) -> T | None: ...
    @overload
    def read(self, key: str, as_type: type[T], default: T) -> T: ...
    def read(self, key: str, as_type: type[T], default: T | None = None) -> T | None:
        """The value as this type, or the default where no source gives one."""
        return TypeAdapter(as_type).validate_python(self[key]) if key in self else default

    @property
    def asked(self) -> frozenset[str]:
        """The keys that the application itself asked for; they match even where no operator does."""
        return frozenset(self._asked)

    def __repr__(self) -> str:
        return f"Config({len(self)} keys)"
