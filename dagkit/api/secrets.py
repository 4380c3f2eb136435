"""The secrets that an object holds: what no message may show."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel, Secret, SecretBytes, SecretStr

MASK = "**********"


def secrets_in(value: Any) -> set[str]:
    """The secret texts in a value: in the properties of an operator, and in what they consist of."""
    return {secret for secret in _secrets(value) if secret}


def _secrets(value: Any) -> Iterator[str]:
    if isinstance(value, SecretStr | SecretBytes | Secret):
        yield from _texts(value.get_secret_value())
    else:
        for part in _parts(value):
            yield from _secrets(part)


def _texts(secret: object) -> Iterator[str]:
    """A secret as messages may show it: itself, and as `repr` escapes it."""
    yield secret.decode("utf-8", "backslashreplace") if isinstance(secret, bytes) else str(secret)
    yield repr(secret).strip("b'\"")


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, BaseModel):
        yield from (getattr(value, name, None) for name in type(value).model_fields)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from (getattr(value, field.name, None) for field in fields(value))
    elif isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
