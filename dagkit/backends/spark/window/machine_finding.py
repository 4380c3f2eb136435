"""The result of a check of a machine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    check: str
    ok: bool
    found: str
    help: str = ""
    """What to do if it is not OK."""
