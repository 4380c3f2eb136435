"""The limit for nested lists and objects in values."""

from typing import Any

DEEPEST = 100
"""The greatest depth of lists and objects in a value."""

TOO_DEEP = f"it nests lists and objects deeper than {DEEPEST}"


def is_too_deep(value: Any) -> bool:
    """Whether a value nests lists and objects deeper than `DEEPEST`."""
    level = [value]
    for _ in range(DEEPEST):
        level = [part for part in level if isinstance(part, dict | list)]
        level = [part for outer in level for part in (outer.values() if isinstance(outer, dict) else outer)]
    return any(isinstance(part, dict | list) for part in level)
