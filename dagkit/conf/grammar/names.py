"""Names in keys: exact names, patterns, and names folded to the characters of environment variables."""

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from dagkit.ground.patterns import is_whole, refusal

_PATTERN_SIGNS = re.compile(r"[\\^.\[\]|?*+(){}]")
"""Characters that make a name a pattern. `$` is not one: in the middle of a name, as in `Module$inner`, a pattern with
`$` would match nothing, and at the end `$` has no effect."""

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPELLABLE = re.compile(r"[^0-9A-Za-z]")


class Fit(IntEnum):
    """How the name in a key fits a real name, the weakest fit first."""

    NOT = 0
    ANYONE = 1
    """The key has no name: it is set one level up, for all."""
    STAR = 2
    """The key has the name `*`, for all."""
    PATTERN = 3
    EXACT = 4


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A name in a key: an exact name, or a regular expression that must match whole names; `*` matches any name."""

    text: str
    folded: bool = False
    """Whether it comes from an environment variable, where every character but letters and digits became `_`."""

    @property
    def is_plain(self) -> bool:
        """Whether the name matches only itself."""
        return self.text != "*" and not _PATTERN_SIGNS.search(self.text)

    @property
    def fault(self) -> str | None:
        """Why the pattern cannot be compiled; None if it can, or if it is a plain name."""
        return None if self.is_plain or self.text == "*" else refusal(self.text)

    def fit(self, name: str) -> Fit:
        """How the pattern fits a name."""
        if name == self.text or (self.folded and folded(name) == self.text):
            return Fit.EXACT
        if self.is_plain:
            return Fit.NOT
        if self.text == "*":
            return Fit.STAR
        return Fit.PATTERN if is_whole(self.text, name) else Fit.NOT

    def __str__(self) -> str:
        return self.text


@cache
def folded(name: str) -> str:
    """The name as an environment variable spells it: `Block-reader` is `BLOCK_READER`."""
    return _UNSPELLABLE.sub("_", name).upper()


@cache
def snake(name: str) -> str:
    """The property name in snake_case: `blockSize` becomes `block_size`."""
    return _HUMPS.sub("_", name).lower()


@cache
def bare(name: str) -> str:
    """The property name without case and underscores, the same for every spelling of it."""
    return name.replace("_", "").casefold()
