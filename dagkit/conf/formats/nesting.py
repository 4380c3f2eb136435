"""How deep a value may nest lists and objects."""

from typing import Any

DEEPEST = 100
"""Lists and objects within one another that a value may have."""

TOO_DEEP = f"it nests lists and objects deeper than {DEEPEST}"


def is_too_deep(value: Any) -> bool:
    """Whether a value nests deeper than a value may."""
    level = [value]
    for _ in range(DEEPEST):
        level = [part for part in level if isinstance(part, dict | list)]
        level = [part for outer in level for part in (outer.values() if isinstance(outer, dict) else outer)]
    return any(isinstance(part, dict | list) for part in level)
