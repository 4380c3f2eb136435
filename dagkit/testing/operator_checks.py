"""Checks that an operator keeps its contract: it may be copied, stopped between two windows, and run again."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import cloudpickle

from dagkit.api.external import Unavailable
from dagkit.api.operators import InputOperator, Operator, batch_handler_of, handler_name
from dagkit.api.ports import input_ports
from dagkit.testing.alone import Alone


class ContractBroken(AssertionError):
    """A component breaks a contract that the engine relies on."""


ATTEMPTS = 20
"""How often a check tries what raises `Unavailable`: a server that fails now and then answers one of them."""


def until_answered(name: str, attempt: Callable[[], object]) -> None:
    """Call `attempt` again while it raises `Unavailable`, as a launch does, but without pauses and not for ever."""
    for number in range(1, ATTEMPTS + 1):
        try:
            attempt()
        except Unavailable as error:
            if number == ATTEMPTS:
                raise ContractBroken(f"{name} got no answer in {number} attempts: {error.problem}") from error
        else:
            return


Items = Sequence[Any] | Mapping[str, Sequence[Any]]
"""The items of one window: of the only input, or by input."""
Move = Callable[[Alone[Operator]], Alone[Operator]]


@dataclass(frozen=True, slots=True)
class Done:
    """What an operator did in one window, and what it kept after it."""

    sent: Mapping[str, list[Any]]
    written: Mapping[str, Mapping[str, bytes]]
    staged: Mapping[str, list[bytes]]
    metrics: Mapping[str, Any]
    state: Mapping[str, Any]

    @classmethod
    def by(cls, alone: Alone[Operator]) -> "Done":
        """What the operator did since the last call."""
        return cls(
            {port: alone.sent(port) for port in alone.outputs},
            {name: files.contents() for name, files in alone.files.items()},
            {name: list(entries.added) for name, entries in alone.entries.items()},
            dict(alone.metrics),
            deepcopy(dict(alone.state)),
        )

    def difference(self, other: "Done") -> str:
        """The first thing that differs from another one, as text; empty if nothing does."""
        for what in ("sent", "written", "staged", "state", "metrics"):
            here, there = getattr(self, what), getattr(other, what)
            for name in here:
                if here[name] != there.get(name):
                    return f"{name}: {what} {there.get(name)!r:.200} instead of {here[name]!r:.200}"
        return ""

    def __bool__(self) -> bool:
        return any(map(any, (self.sent.values(), self.written.values(), self.staged.values(), self.state.values())))


def check_operator(operator: Operator, *windows: Items, **given: Any) -> None:
    """Check that an operator does the same with these windows whenever the engine runs them. Raise ContractBroken.

    The engine copies an operator to other processes, repeats a window after a crash, restores the operator from its
    declared state before any window, and passes items one by one or in batches. None of this may change what it sends,
    writes and keeps, and it must leave the items unchanged, because other operators receive the same objects.
    Further arguments are those of `Alone`.
    """
    assert not isinstance(operator, InputOperator), "check_source checks input operators"
    name = type(operator).__name__
    before = deepcopy(windows)
    expected = _run(operator, windows, lambda alone: alone, given)
    if not any(expected):
        raise ContractBroken(f"{name} sent, wrote and kept nothing, so nothing can be proven of it")
    # Items without an `__eq__` differ from their copies, so a difference shows nothing of them.
    if before == deepcopy(before) and windows != before:
        raise ContractBroken(f"{name} changed the items that it received: they became {windows!r:.200}")

    def compare(how: str, help_: str, found: Sequence[Done]) -> None:
        for number, (one, other) in enumerate(zip(expected, found, strict=True), 1):
            if difference := one.difference(other):
                raise ContractBroken(f"{name}, {how}, window {number}: {difference}; {help_}")

    copied = cloudpickle.loads(cloudpickle.dumps(operator))
    again = _run(copied, windows, lambda alone: alone, given)
    compare("run again in a copy", "use no clock but the context's, no random numbers, and no order of a set", again)
    restored = _run(operator, windows, lambda alone: alone.restarted(), given)
    compare("restored before each window", "declare what it remembers as State", restored)
    if _takes_both(operator):
        batches = _run(operator, windows, lambda alone: alone, given, batch=True)
        compare("given batches", "let process and process_batch do the same", batches)


def _run(
    operator: Operator, windows: Sequence[Items], move: Move, given: Mapping[str, Any], *, batch: bool = False
) -> list[Done]:
    """Run an operator alone. `move` replaces it before each window."""
    alone, done = Alone(operator, **given), []
    for window in windows:
        alone = move(alone)
        with alone.window():
            for port, items in window.items() if isinstance(window, Mapping) else [(None, window)]:
                if batch:
                    alone.send_batch(items, to=port)
                else:
                    alone.send(*items, to=port)
        done.append(Done.by(alone))
    return done


def _takes_both(operator: Operator) -> bool:
    """Whether an input takes single items and batches, by different methods of the author."""
    return any(
        callable(getattr(operator, handler_name(port), None)) and batch_handler_of(operator, name) is not None
        for name, port in input_ports(type(operator)).items()
    )
