"""Regular expressions that are matched in bounded time, whatever they are: the patterns of names come from files.

Python's own matcher may try exponentially many ways. This one follows all ways at once, as sets of positions, so it
takes what is regular and refuses what is not: references to groups, looking ahead and behind, possessive quantifiers.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

DEEPEST = 20
"""Groups within groups that a pattern may have."""

_ATOM = re.compile(
    r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)|\[\^?\]?(?:\\.|[^\]\\])*\]|[^()|]", re.DOTALL
)
_QUANTIFIER = re.compile(r"(?:([*+?])|\{(\d*)(,?)(\d*)\}(?<!\{\})(?<!\{,\}))([?+]?)")
_OPENING = re.compile(r"\((?:\?:|\?P<\w+>|(?!\?))")
_FLAGS = re.compile(r"\(\?[is]+\)")
_BOUNDS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class NoPattern(ValueError):
    """Why a text is no pattern that can be matched in bounded time."""


class Pattern:
    """A compiled pattern, for whole names."""

    def __init__(self, text: str) -> None:
        try:
            compiled = re.compile(text)
        except re.error as malformed:
            raise NoPattern(str(malformed)) from malformed
        except OverflowError as malformed:
            raise NoPattern("it repeats something too often") from malformed
        except RecursionError as malformed:
            raise NoPattern(_TOO_DEEP) from malformed
        root = _Reader(text).whole()
        self._simple = compiled if not re.search(r"[(|]", text) and len(_SIGNS.findall(text)) < 3 else None
        self._root = root

    def is_whole(self, name: str) -> bool:
        """Whether the pattern matches the name from its first letter to its last."""
        if self._simple is not None:
            return self._simple.fullmatch(name) is not None
        return len(name) in _Run(name).ends(self._root, 0)


_SIGNS = re.compile(r"[*+?{]")
_TOO_DEEP = f"it nests groups deeper than {DEEPEST}"


@cache
def compiled(text: str) -> Pattern | NoPattern:
    """The pattern, or why it is none."""
    try:
        return Pattern(text)
    except NoPattern as refused:
        return refused


@dataclass(frozen=True, slots=True, eq=False)
class _Atom:
    """One letter, or a place between two."""

    compiled: re.Pattern[str]


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """One of several ways, each a row of parts."""

    ways: tuple[tuple["_Node", ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Repeat:
    part: "_Node"
    least: int
    most: int | None


_Node = _Atom | _Choice | _Repeat


class _Reader:
    """Reads a text that Python's own parser has taken."""

    def __init__(self, text: str) -> None:
        flags = _FLAGS.match(text)
        self.text = text
        self.position = flags.end() if flags else 0
        self.flags = flags[0] if flags else ""

    def whole(self) -> _Node:
        return self.choice(0)

    def choice(self, depth: int) -> _Choice:
        if depth > DEEPEST:
            raise NoPattern(_TOO_DEEP)
        ways: list[list[_Node]] = [[]]
        while self.position < len(self.text) and self.text[self.position] != ")":
            if self.text[self.position] == "|":
                self.position += 1
                ways.append([])
            else:
                ways[-1].append(self.quantified(self.part(depth)))
        return _Choice(tuple(tuple(way) for way in ways))

    def part(self, depth: int) -> _Node:
        if self.text[self.position] == "(":
            opening = _OPENING.match(self.text, self.position)
            if opening is None:
                raise NoPattern(f"{self.text[self.position : self.position + 4]!r} cannot be matched in bounded time")
            self.position = opening.end()
            group = self.choice(depth + 1)
            self.position += 1
            return group
        found = _ATOM.match(self.text, self.position)
        assert found is not None, "Python's parser takes no other sign here"
        self.position = found.end()
        if re.fullmatch(r"\\\d", found[0]):
            raise NoPattern(f"{found[0]} refers to a group, which cannot be matched in bounded time")
        sign = f"\\{found[0]}" if found[0] in "{}" else found[0]
        return _Atom(re.compile(self.flags + sign))

    def quantified(self, part: _Node) -> _Node:
        found = _QUANTIFIER.match(self.text, self.position)
        if found is None:
            return part
        if found[5] == "+":
            raise NoPattern(f"{found[0]} cannot be matched in bounded time")
        self.position = found.end()
        if found[1]:
            return _Repeat(part, *_BOUNDS[found[1]])
        least = int(found[2] or 0)
        return _Repeat(part, least, int(found[4]) if found[4] else None if found[3] else least)


class _Run:
    """One name against a pattern: where each part may end, by where it begins, worked out once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known: dict[tuple[_Node, int], frozenset[int]] = {}

    def ends(self, node: _Node, start: int) -> frozenset[int]:
        if (node, start) not in self.known:
            self.known[node, start] = self._ends(node, start)
        return self.known[node, start]

    def after(self, node: _Node, starts: Iterable[int]) -> frozenset[int]:
        return frozenset(end for start in starts for end in self.ends(node, start))

    def _ends(self, node: _Node, start: int) -> frozenset[int]:
        if isinstance(node, _Atom):
            found = node.compiled.match(self.name, start)
            return frozenset() if found is None else frozenset([found.end()])
        if isinstance(node, _Repeat):
            return self._repeated(node, start)
        reached: set[int] = set()
        for way in node.ways:
            here = frozenset([start])
            for part in way:
                here = self.after(part, here)
            reached |= here
        return frozenset(reached)

    def _repeated(self, node: _Repeat, start: int) -> frozenset[int]:
        here = frozenset([start])
        for _ in range(node.least):
            then = self.after(node.part, here)
            if then == here:
                break
            here = then
        reached, count = here, node.least
        while here and (node.most is None or count < node.most):
            here = self.after(node.part, here) - reached
            reached, count = reached | here, count + 1
        return reached
