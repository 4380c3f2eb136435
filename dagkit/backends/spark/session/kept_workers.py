"""The workers of a Java that outlives launches: each launch gets new ones, forked with the operators imported."""

from collections.abc import Iterator
from importlib import import_module

from dagkit.api.code_origin import library_names

_prepared = False
"""Whether this process, or the one that forked it, is prepared."""


def prepare() -> None:
    """In the process that forks workers: import what launches may use."""
    global _prepared  # noqa: PLW0603 - the state of the process
    import_operators()
    _prepared = True


def are_prepared(_: int, items: Iterator[int]) -> Iterator[bool]:
    """In a worker: whether it was forked by a prepared process."""
    # A task that leaves input unread loses its worker.
    list(items)
    yield _prepared


def import_operators() -> None:
    """Import all public names of the libraries of operators, with the modules that define them."""
    for library in library_names():
        package = import_module(library)
        for name in getattr(package, "__all__", ()):
            getattr(package, name)
