"""Telling alike: a fault inside a module is one fault, however many times the module stands in the graph."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import takewhile

from dagkit.errors import Diagnostic
from dagkit.graph import SEPARATOR, Graph

NAMED = 5
"""How many modules a fault names; of more, it tells their number."""

_NAMING = re.compile(rf"{re.escape(SEPARATOR)}|\bmodule ")
"""What follows the name of a module in the name of what it holds, or goes before it."""

_HERE = "\0"
"""Stands for the module in what is told of it; no name that can be printed holds it."""


def told_once(told: Iterable[Diagnostic], graph: Graph) -> list[Diagnostic]:
    """The diagnostics, each of those that differ only in the module of which they tell once, with every such module.

    A module's line is one, however often it is drawn, and what is mended there is mended in all of them.
    """
    diagnostics, modules = list(told), _Modules(graph)
    alike: dict[object, tuple[int, list[str]]] = {}
    for index, diagnostic in enumerate(diagnostics):
        module, said = modules.within(diagnostic.problem)
        key = (diagnostic.code, diagnostic.where, diagnostic.severity, said) if module else index
        alike.setdefault(key, (index, []))[1].append(module)
    return [_with_places(diagnostics[index], [*dict.fromkeys(places)][1:]) for index, places in alike.values()]


def _with_places(diagnostic: Diagnostic, further: list[str]) -> Diagnostic:
    if not further:
        return diagnostic
    named = [*further[:NAMED], *([f"{len(further) - NAMED} more"] if len(further) > NAMED else [])]
    *most, last = named
    places = f"{', '.join(most)} and {last}" if most else last
    return replace(diagnostic, problem=f"{diagnostic.problem}; likewise in {places}")


class _Modules:
    """The modules that were expanded, by full name: what stands before a separator in the names of what they held."""

    def __init__(self, graph: Graph) -> None:
        self.names: set[str] = set()
        for name in (*graph.by_name, *(stream.name for stream in graph.streams)):
            module = name.rpartition(SEPARATOR)[0]
            while module and module not in self.names:
                self.names.add(module)
                module = module.rpartition(SEPARATOR)[0]
        self.lengths = sorted({len(name) for name in self.names}, reverse=True)

    def within(self, text: str) -> tuple[str, str]:
        """The innermost module that holds all that the text names, and the text without it; none where none does."""
        found = dict(self._named(text))
        levels = zip(*(name.split(SEPARATOR) for name in found.values()), strict=False)
        module = SEPARATOR.join(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels))
        for start in sorted(found, reverse=True) if module else ():
            text = text[:start] + _HERE + text[start + len(module) :]
        return module, text

    def _named(self, text: str) -> Iterator[tuple[int, str]]:
        """Where a module is named, and which; the innermost comes last of those that begin at one place."""
        for mark in _NAMING.finditer(text):
            for length in self.lengths:
                start = mark.end() if mark[0] != SEPARATOR else mark.start() - length
                name, after = text[max(start, 0) : start + length], text[start + length :]
                if name in self.names and (mark[0] == SEPARATOR or after.startswith((" ", ","))):
                    yield start, name
                    break
