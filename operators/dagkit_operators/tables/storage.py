"""Settings of storages and catalogs, and what their errors mean."""

import re
from collections.abc import Mapping

from pydantic import SecretStr

from dagkit import Unavailable
from dagkit.errors import RunFailure
from dagkit_operators.tables.faults import DatabaseRefused

_REFUSED = re.compile(
    r"\b(401|403)\b|AccessDenied|Forbidden|Unauthori[sz]ed|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|"
    r"NoSuchBucket|[Pp]ermission denied"
)


def plain(settings: Mapping[str, str | SecretStr]) -> dict[str, str]:
    """Settings with the values of secrets."""
    return {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in settings.items()
    }


def storage_failure(error: Exception, table: str) -> RunFailure:
    """The failure for an error of a storage: it refuses the client, or it cannot be reached or has no room now."""
    text = f"{table}: {' '.join(str(error).split()):.400}"
    return DatabaseRefused(text) if _REFUSED.search(text) else Unavailable(text)
