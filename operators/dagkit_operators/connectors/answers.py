"""The errors of clients that authors use, if a server does not answer now."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError

from dagkit import Unavailable

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses of HTTP that a later request may not get."""
_AWAY = frozenset({"ConnectionError", "Timeout", "TimeoutError", "TransportError", "URLError", "IncompleteRead"})
"""Names of the classes of errors of connections of Python, requests, httpx, redis and others, with their subclasses."""


@contextmanager
def answered() -> Iterator[None]:
    """Raise `Unavailable` for an error of a connection, and for an answer of HTTP that asks to try again later."""
    try:
        yield
    except Unavailable:
        raise
    except Exception as error:
        # requests and httpx have the answer at the error, and in urllib it is the error. An answer of requests is false
        # if its status is one of an error.
        response = getattr(error, "response", None)
        answer = error if response is None else response
        if isinstance(error, HTTPError):
            error.close()
        status = getattr(answer, "status_code", getattr(answer, "code", None))
        names = {kind.__name__ for kind in type(error).__mro__}
        is_away = status in _PASSING if isinstance(status, int) else not names.isdisjoint(_AWAY) and not _forged(error)
        if not is_away:
            raise
        away = Unavailable(f"{type(error).__name__}: {error}")
        away.retry_after = _seconds(getattr(answer, "headers", None))
        raise away from error


def _forged(error: Exception) -> bool:
    """Whether a server did not prove who it is: that does not pass by itself."""
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def _seconds(headers: Any) -> float:
    """The seconds that an answer asks to wait; 0 if it asks for none, or until a date."""
    asked = "" if headers is None else str(headers.get("Retry-After") or "")
    return float(asked) if asked.isdecimal() else 0.0
