"""Merging: report a fault inside a module once, however many times the module is used in the graph."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import takewhile

from dagkit.errors import Diagnostic
from dagkit.graph import SEPARATOR, Graph

NAMED = 5
"""How many modules a diagnostic names. It gives only the number of further ones."""

_NAMING = re.compile(rf"{re.escape(SEPARATOR)}|\bmodule ")
"""The marks of a module's name in a message: the separator after it, or the word before it."""

_HERE = "\0"
"""A placeholder for the module's name in a message. No printable name contains it."""


def merge_alike(diagnostics: Iterable[Diagnostic], graph: Graph) -> list[Diagnostic]:
    """Merge diagnostics that differ only in the module that they name into one, which names all those modules.

    They are about one line of the module's code: a fix there repairs every use of the module.
    """
    faults, modules = list(diagnostics), _Modules(graph)
    alike: dict[object, tuple[int, list[str]]] = {}
    for index, diagnostic in enumerate(faults):
        module, rest = modules.within(diagnostic.problem)
        key = (diagnostic.code, diagnostic.where, diagnostic.severity, rest) if module else index
        alike.setdefault(key, (index, []))[1].append(module)
    return [_with_places(faults[index], [*dict.fromkeys(places)][1:]) for index, places in alike.values()]


def _with_places(diagnostic: Diagnostic, further: list[str]) -> Diagnostic:
    if not further:
        return diagnostic
    named = [*further[:NAMED], *([f"{len(further) - NAMED} more"] if len(further) > NAMED else [])]
    *most, last = named
    places = f"{', '.join(most)} and {last}" if most else last
    return replace(diagnostic, problem=f"{diagnostic.problem}; likewise in {places}")


class _Modules:
    """The full names of expanded modules: the parts before separators in the names of operators and streams."""

    def __init__(self, graph: Graph) -> None:
        self.names: set[str] = set()
        for name in (*graph.by_name, *(stream.name for stream in graph.streams)):
            module = name.rpartition(SEPARATOR)[0]
            while module and module not in self.names:
                self.names.add(module)
                module = module.rpartition(SEPARATOR)[0]
        self.lengths = sorted({len(name) for name in self.names}, reverse=True)

    def within(self, text: str) -> tuple[str, str]:
        """The innermost module that contains all that the text names, and the text without it; "" if there is none."""
        found = dict(self._named(text))
        levels = zip(*(name.split(SEPARATOR) for name in found.values()), strict=False)
        module = SEPARATOR.join(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels))
        # From the end, so that the positions before it stay valid.
        for start in sorted(found, reverse=True) if module else ():
            text = text[:start] + _HERE + text[start + len(module) :]
        return module, text

    def _named(self, text: str) -> Iterator[tuple[int, str]]:
        """Each position at which the text names a module, with its name. At one position the innermost comes last."""
        for mark in _NAMING.finditer(text):
            for length in self.lengths:
                start = mark.end() if mark[0] != SEPARATOR else mark.start() - length
                name, after = text[max(start, 0) : start + length], text[start + length :]
                if name in self.names and (mark[0] == SEPARATOR or after.startswith((" ", ","))):
                    yield start, name
                    break
