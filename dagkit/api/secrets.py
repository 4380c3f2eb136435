"""The secrets that an object holds: what no message may show."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel, Secret, SecretBytes, SecretStr

MASK = "**********"


@dataclass(frozen=True, slots=True)
class SecretByName:
    """Annotates the type of values of a mapping. A value is secret if its name is that of a secret, as `sasl.password`.

    A `SecretStr` is a secret under any name.
    """

    also: tuple[str, ...] = ()
    """Names of secrets that are not recognized as such."""


_URL = re.compile(r"[A-Za-z][\w+.-]*://(?:(?P<user>[^/?#]*)@)?[^?#]*(?:\?(?P<query>[^#]*))?")
_SHORTEST = 8
"""The fewest characters of a value in a query that messages do not show by itself: `0` or `true` is no secret."""


def credentials_in(text: str) -> tuple[str, str]:
    """Return the user with the password, and the query, of a URL; "" for each that it lacks."""
    found = _URL.match(text)
    return ("", "") if found is None else (found["user"] or "", found["query"] or "")


def without_credentials(text: str) -> str:
    """Return the text with a mask for the users, the passwords and the queries of its URLs."""
    text = re.sub(r"(?<=://)[^\s/?#]*@", f"{MASK}@", text)
    return re.sub(r"(://[^\s?]*\?)[^\s'\"]+", rf"\g<1>{MASK}", text)


def secrets_in(value: Any, is_secret_name: Callable[[str], bool] = lambda _: False) -> set[str]:
    """The secret texts in a value: in the properties of an operator, and in what they consist of.

    A value is secret by its type, or if it is text under a secret name.
    """
    return {secret for secret in _secrets("", value, is_secret_name) if secret}


def _secrets(name: str, value: Any, is_secret_name: Callable[[str], bool]) -> Iterator[str]:
    if isinstance(value, SecretStr | SecretBytes | Secret):
        yield from _texts(value.get_secret_value())
    elif isinstance(value, str | bytes):
        if is_secret_name(name):
            yield from _texts(value)
    else:
        for below, part in _parts(value):
            yield from _secrets(below or name, part, is_secret_name)


def _texts(secret: object) -> Iterator[str]:
    """A secret as messages may show it: itself, as `repr` escapes it, and the credentials in a URL."""
    text = secret.decode("utf-8", "backslashreplace") if isinstance(secret, bytes) else str(secret)
    yield text
    yield repr(secret).strip("b'\"")
    user, query = credentials_in(text)
    values = [value for pair in query.split("&") if len(value := pair.partition("=")[2]) >= _SHORTEST]
    for part in (user and f"{user}@", user.partition(":")[2], query, *values):
        yield part
        yield unquote(part)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a value, each with its name. Elements of a list or set have none of their own: theirs is ""."""
    # A component with faults lacks the values of properties that were not set.
    if isinstance(value, BaseModel):
        yield from ((name, getattr(value, name, None)) for name in type(value).model_fields)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((field.name, getattr(value, field.name, None)) for field in fields(value))
    elif isinstance(value, Mapping):
        yield from ((str(key), part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (("", part) for part in value)
