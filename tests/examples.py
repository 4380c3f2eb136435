"""How many examples a search draws, by its profile: a quarter in the gate, twice as many in trials."""

from hypothesis import settings


def examples(number: int) -> int:
    """The examples of a test that draws this many with hypothesis's own profile, of 100."""
    return max(1, number * settings().max_examples // 100)
