"""The names of sources in a ledger, and the files that they name.

A name is the path of a file, perhaps after the name of its finder, and perhaps before a version or an identity:
`Finder: /in/a.txt@1f`. Of an element that is no file, the name is JSON.
"""

import re
from collections.abc import Container

from dagkit.ground.urls import is_url

_LOCAL_IDENTITY = re.compile(r"(.+)@[0-9a-f]+\.[0-9a-f]+-[0-9]+-[0-9a-f]{16}(?:-[0-9a-f]+)*", re.DOTALL)
"""The name of a source that is a local file with an identity."""
_VERSION = re.compile(r"(.+)@[0-9a-f]+", re.DOTALL)
"""The name of a source that is a file with the number of its first block; perhaps a path that ends so."""


def is_named(source: str, path: str) -> bool:
    """Whether a name in the ledger is that of a file: perhaps with its finder, and a version or an identity.

    The identity of a remote file begins with the name of the file.
    """
    name = source if source.startswith(path) else source.partition(": ")[2]
    if name == path:
        return True
    return name.startswith(f"{path}@") and ("/" not in name[len(path) :] or name.startswith(path, len(path) + 1))


def owner_of(source: str, receiver: str, arrived: Container[str]) -> str:
    """The operator whose file a source is: the input operator that found it, or the receiver at which it arrived.

    It is empty if the only input operator found it, whose name the source does not contain then. Several operators may
    find the same file, and read it with different results.
    """
    finder, _, found = source.partition(": ")
    if not is_path(source) and is_path(found):
        return finder
    return receiver if source in arrived else ""


def path_of(source: str) -> str:
    """The path in the name of a source of the ledger, without its finder, an identity or a version."""
    if not is_path(source):
        source = next((rest for rest in source.partition(": ")[2:] if is_path(rest)), source)
    if is_url(source):  # the identity of a remote file begins with its name
        names = (source[: mark.start()] for mark in re.finditer("@", source))
        name = next((name for name in names if source.startswith(name, len(name) + 1)), None)
        if name is not None:
            return name
    match = _LOCAL_IDENTITY.fullmatch(source) or _VERSION.fullmatch(source)
    return source if match is None else match[1]


def is_path(name: str) -> bool:
    """Whether the name of a source is that of a file: an absolute path or a URL. That of other elements is JSON."""
    return name.startswith(("/", "file:")) or (is_url(name) and name[0].isalpha())
