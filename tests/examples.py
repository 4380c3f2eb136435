"""How many examples a search draws, by its profile: a quarter in the gate, twice as many in trials."""

from hypothesis import settings


def examples(number: int, *, in_gate: int | None = None) -> int:
    """The examples of a test that draws this many with hypothesis's own profile, of 100; in the gate, maybe fewer."""
    most = settings().max_examples
    return in_gate if in_gate is not None and most < 100 else max(1, number * most // 100)
