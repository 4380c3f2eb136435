"""Tables of cases: each row begins with the sentence that says what it shows."""

from typing import Any

import pytest


def cases(names: str, *rows: tuple[Any, ...]) -> pytest.MarkDecorator:
    """Run a test once for each row: its first value is the id, and the others are the arguments."""
    single = "," not in names
    return pytest.mark.parametrize(names, [r[1] if single else r[1:] for r in rows], ids=[r[0] for r in rows])
