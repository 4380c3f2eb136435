r"""Regular expressions from users, matched in linear time by RE2.

Patterns of names and of files come from property files and command lines, and those of expressions meet values that
their author has never seen. Python's own matcher may try exponentially many ways and cannot be interrupted: it would
hang the driver or a worker. RE2 is linear: it has no lookahead or lookbehind, no backreferences and no possessive
quantifiers. `\w`, `\d`, `\s` and `\b` match ASCII only.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

HELP = "use the RE2 syntax, without lookahead, lookbehind and backreferences: https://github.com/google/re2/wiki/Syntax"

_FLAGS: Final = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
"""The flags of Python's patterns that RE2 has, and its letters for them."""
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def is_whole(pattern: str, name: str) -> bool:
    """Whether the pattern matches the whole name. A pattern that RE2 refuses matches nothing.

    Bytes of a file name that are not text are matched as question marks.
    """
    matcher = _compiled(pattern)
    return not isinstance(matcher, str) and matcher.fullmatch(name.encode(errors="replace")) is not None


def named_groups(pattern: str) -> frozenset[str]:
    """The names of the groups of a pattern. A pattern that RE2 refuses has none."""
    matcher = _compiled(pattern)
    return frozenset() if isinstance(matcher, str) else frozenset(matcher.groupindex)


def groups_of(pattern: str, text: str) -> dict[str, str] | None:
    """What the named groups of a pattern match, if it matches the whole text; None if it does not."""
    matcher = _compiled(pattern)
    match = None if isinstance(matcher, str) else matcher.fullmatch(text)
    return None if match is None else {name: value for name, value in match.groupdict().items() if value is not None}


def refusal(pattern: str) -> str | None:
    """Why RE2 refuses the pattern; None if it accepts it."""
    matcher = _compiled(pattern)
    return matcher if isinstance(matcher, str) else None


def whole_matcher(pattern: str | bytes, flags: int = 0) -> Callable[[Any], bool]:
    """Return a function that reports whether a pattern matches a whole text, or bytes if the pattern is of bytes.

    `flags` are those of Python's `re`. Bytes of a text that could not be decoded are matched as U+FFFD. Raise
    ValueError if RE2 refuses the pattern or lacks a flag, TypeError if it is neither text nor bytes.
    """
    if not isinstance(pattern, str | bytes):
        raise TypeError(f"a pattern is a text, bytes or a compiled pattern, not {pattern!r}")
    letters = "".join(letter for flag, letter in _FLAGS.items() if flags & flag)
    lacking = re.RegexFlag(flags) & ~(re.IGNORECASE | re.MULTILINE | re.DOTALL | re.ASCII | re.UNICODE)
    if lacking:
        raise ValueError(f"pattern {pattern!r}: RE2 has no flag {lacking!r}; {HELP}")
    begin = f"(?{letters})" if letters else ""
    matcher = _compiled(begin + pattern if isinstance(pattern, str) else begin.encode() + pattern)
    if isinstance(matcher, str):
        raise ValueError(f"pattern {pattern!r}: {matcher}; {HELP}")  # noqa: TRY004 - a reason, not a type
    kind, fullmatch = type(pattern), matcher.fullmatch

    def is_matched(text: Any) -> bool:
        if not isinstance(text, kind):
            raise TypeError(f"the pattern {pattern!r} cannot match {text!r:.80}, which is no {kind.__name__}")
        return fullmatch(_encoded(text) if isinstance(text, str) else text) is not None

    return is_matched


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text).encode()


@cache
def _compiled(pattern: str | bytes) -> Any:
    """The compiled pattern, or the reason why RE2 refuses it. Patterns of bytes match each byte as one character."""
    import re2  # noqa: PLC0415 - most workers match no pattern and need not load it

    options = re2.Options()
    # By default, RE2 prints errors to standard error, beside the message that a caller makes of them.
    options.log_errors = False
    if isinstance(pattern, bytes):
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        return re2.compile(pattern, options)
    except re2.error as refused:
        reason = refused.args[0]
        return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    except UnicodeEncodeError:
        return "it contains half of a surrogate pair"
