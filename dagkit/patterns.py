r"""Regular expressions from users, matched in linear time by RE2.

Patterns of names and of files come from property files and command lines. Python's own matcher may try
exponentially many ways and cannot be interrupted: it would hang the driver. RE2 is linear: it has no lookahead or
lookbehind, no backreferences and no possessive quantifiers. `\w`, `\d`, `\s` and `\b` match ASCII only.
"""

from functools import cache
from typing import Any

HELP = "use the RE2 syntax, without lookahead, lookbehind and backreferences: https://github.com/google/re2/wiki/Syntax"


def is_whole(pattern: str, name: str) -> bool:
    """Whether the pattern matches the whole name. A pattern that RE2 refuses matches nothing.

    Bytes of a file name that are not text are matched as question marks.
    """
    found = _compiled(pattern)
    return not isinstance(found, str) and found.fullmatch(name.encode(errors="replace")) is not None


def named_groups(pattern: str) -> frozenset[str]:
    """The names of the groups of a pattern. A pattern that RE2 refuses has none."""
    found = _compiled(pattern)
    return frozenset() if isinstance(found, str) else frozenset(found.groupindex)


def groups_of(pattern: str, text: str) -> dict[str, str] | None:
    """What the named groups of a pattern match, if it matches the whole text; None if it does not."""
    found = _compiled(pattern)
    match = None if isinstance(found, str) else found.fullmatch(text)
    return None if match is None else {name: value for name, value in match.groupdict().items() if value is not None}


def refusal(pattern: str) -> str | None:
    """Why RE2 refuses the pattern; None if it accepts it."""
    found = _compiled(pattern)
    return found if isinstance(found, str) else None


@cache
def _compiled(pattern: str) -> Any:
    """The compiled pattern, or the reason why RE2 refuses it."""
    import re2  # noqa: PLC0415 - most workers match no pattern and need not load it

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as refused:
        reason = refused.args[0]
        return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    except UnicodeEncodeError:
        return "it contains half of a surrogate pair"
