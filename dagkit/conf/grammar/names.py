"""Names as keys write them: equal, matched as a pattern, or folded to what an environment variable can spell."""

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from dagkit.patterns import is_whole, refusal

_PATTERN_SIGNS = re.compile(r"[\\^.\[\]|?*+(){}]")
"""What makes a name more than itself. A `$` alone does not: in the middle of a name, as in `Module$inner`, it is
matched by nothing, and at the end it changes nothing."""

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPELLABLE = re.compile(r"[^0-9A-Za-z]")


class Fit(IntEnum):
    """How a key's name came to hold for a real one, the weakest first."""

    NOT = 0
    ANYONE = 1
    """The key names nobody: it was written one floor up, for all."""
    STAR = 2
    """The key names all, with a lone `*`."""
    PATTERN = 3
    EXACT = 4


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A name in a key: itself, and a regular expression that is matched against whole names; a lone `*` is any."""

    text: str
    folded: bool = False
    """Whether it comes from an environment variable, where every sign outside letters and digits became `_`."""

    @property
    def is_plain(self) -> bool:
        """Whether the name stands for nothing but itself."""
        return self.text != "*" and not _PATTERN_SIGNS.search(self.text)

    @property
    def fault(self) -> str | None:
        """Why the pattern cannot be compiled, where it is one."""
        return None if self.is_plain or self.text == "*" else refusal(self.text)

    def fit(self, name: str) -> Fit:
        """How this holds for a name."""
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
    """The property name as Python spells it: `blockSize` is `block_size`, `filePatternRegularExp` likewise."""
    return _HUMPS.sub("_", name).lower()


@cache
def bare(name: str) -> str:
    """The property name without case and underscores, so that every spelling of it is the same."""
    return name.replace("_", "").casefold()
