"""Counts the calls of functions: a cost that does not depend on the machine."""

import gc
import sys
from collections.abc import Callable


def calls_of(ask: Callable[[], object]) -> int:
    """How many functions were called."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    gc.disable()  # hypothesis has functions called by it
    sys.setprofile(count)
    try:
        ask()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls
