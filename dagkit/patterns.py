r"""Regular expressions that come from outside, matched in linear time by RE2.

The patterns of names and of files stand in property files and on command lines. Python's own matcher may try
exponentially many ways, cannot be interrupted meanwhile, and would hang the driver. RE2 cannot: it has no looking ahead
or behind, no references to groups and no possessive quantifiers. `\w`, `\d`, `\s` and `\b` mean ASCII there.
"""

from functools import cache
from typing import Any

HELP = (
    "write it as RE2 has it, without looking ahead or behind and without references to groups: "
    "https://github.com/google/re2/wiki/Syntax"
)


def is_whole(pattern: str, name: str) -> bool:
    """Whether the pattern matches the name from its first character to its last; a refused one matches nothing.

    Bytes of a file's name that are not text count as question marks.
    """
    found = _compiled(pattern)
    return not isinstance(found, str) and found.fullmatch(name.encode(errors="replace")) is not None


def refusal(pattern: str) -> str | None:
    """Why RE2 refuses the pattern; None for one that it takes."""
    found = _compiled(pattern)
    return found if isinstance(found, str) else None


@cache
def _compiled(pattern: str) -> Any:
    """The pattern, or why it is none."""
    import re2  # noqa: PLC0415 - workers need it only where they match patterns

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as refused:
        said = refused.args[0]
        return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    except UnicodeEncodeError:
        return "it holds half a character"
