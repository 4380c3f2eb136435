"""Values of Spark that an operator uses on the driver only."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self


class OnDriver:
    """A value of the driver. Workers receive an empty copy, and all of a class are equal: no plan depends on one."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()

    def __repr__(self) -> str:
        return type(self).__name__.strip("_")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


@contextmanager
def setting(session: Any, name: str, value: str) -> Iterator[None]:
    """Change a setting of a session for the time of the block."""
    before = session.conf.get(name)
    session.conf.set(name, value)
    try:
        yield
    finally:
        session.conf.set(name, before)
