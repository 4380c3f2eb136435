"""Configuration: keys, their values, and the source of each value."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeVar, overload

from pydantic import TypeAdapter

from dagkit.errors import Where

T = TypeVar("T")


class Source(IntEnum):
    """The kinds of source of a value. A later one overrides an earlier one."""

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
    """The source of a value, for reports and for `--origin`."""

    source: Source
    where: Where | None = None
    key: str | None = None
    shown: str | None = None
    """The text to print instead of the value if the value is a secret."""

    def __str__(self) -> str:
        if self.source is Source.DEFAULT:
            return "default"
        if self.source is Source.CODE:
            return f"code at {self.where}" if self.where else "code"
        return f"{self.key} at {self.where}" if self.where else f"{self.key}"


DEFAULT = Origin(Source.DEFAULT)


@dataclass(frozen=True, slots=True)
class Setting:
    """A value, such as that of an attribute, and where it was set."""

    value: Any
    origin: Origin


# Without `==`: a command line may set one key twice to one value, and these are two entries.
@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A key and its value from one source."""

    key: str
    value: Any = field(repr=False)
    """A text or a TOML value, after substitution. It is never shown if it is a secret: then its origin has a text."""
    origin: Origin


class Config(Mapping[str, Any]):
    """All settings of a launch, in order of precedence. As a mapping, it holds the effective value of each key."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries = tuple(entries)
        self._winning = {entry.key: entry for entry in self.entries}
        self._asked: set[str] = set()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Config":
        """A configuration made from plain values, for tests and notebooks."""
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
        """The value, converted to this type; `default` if no source sets the key. Raise ValidationError if invalid."""
        return TypeAdapter(as_type).validate_python(self[key]) if key in self else default

    @property
    def asked(self) -> frozenset[str]:
        """The keys that the application read. They are not reported as unmatched even if no operator has them."""
        return frozenset(self._asked)

    def __repr__(self) -> str:
        return f"Config({len(self)} keys)"
