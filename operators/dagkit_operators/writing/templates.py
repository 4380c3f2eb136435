"""Templates of file names: text with the names of values in braces, such as `part-{partition:05}-{number:05}`."""

import re
from collections.abc import Sequence
from string import Formatter

WIDEST = 32
"""Characters that a value may be padded to."""
_FORM = re.compile(r"0?(\d{0,2})[bdoxX]?", re.ASCII)


def values_in(template: str, known: Sequence[str]) -> frozenset[str]:
    """Return the names of the values in a template. Raise ValueError unless each is known and has a simple form.

    `str.format` also reads attributes and elements of values, and pads to any width. Templates come from property
    files, so what remains here are whole numbers with a bounded width.
    """
    try:
        fields = [
            (name, form, conversion) for _, name, form, conversion in Formatter().parse(template) if name is not None
        ]
    except ValueError as error:
        raise ValueError(f"{template!r} is not a template: {error}; write {{{{ for a brace") from error
    for name, form, conversion in fields:
        if name not in known:
            names = ", ".join(f"{{{one}}}" for one in known)
            raise ValueError(f"{{{name}}} is not a value of a file name; known are {names}")
        matched = _FORM.fullmatch(form or "")
        if conversion or matched is None or int(matched[1] or 0) > WIDEST:
            shown = f"{{{name}{f'!{conversion}' if conversion else ''}{f':{form}' if form else ''}}}"
            raise ValueError(
                f"{shown} is not a form of a number here; write {{{name}}}, or a width up to {WIDEST}, as {{{name}:05}}"
            )
    return frozenset(name for name, _, _ in fields)
