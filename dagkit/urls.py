"""What a place means: a path of this machine, or a URL that pyarrow or fsspec open.

`file:` URLs are paths, in which `%FF` is a byte. What follows a `?` in a URL are options of its filesystem. In URLs
that pyarrow knows, paths are quoted; fsspec takes them as they stand.
"""

import os
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

from dagkit.errors import printable


class Resolved(NamedTuple):
    """Where a URL leads."""

    filesystem: Any
    """A filesystem of pyarrow, or one that looks like it."""
    path: str
    """The path in it."""
    quoted: bool
    """Whether paths in such URLs are quoted."""


def is_url(place: str) -> bool:
    """Whether a filesystem must be asked; `file:` is this machine."""
    return "://" in place and not place.startswith("file:")


def local_path(place: str) -> str:
    """The path on this machine, of what is no URL that a filesystem is asked for."""
    return os.fsdecode(unquote_to_bytes(urlsplit(place).path)) if place.startswith("file:") else place


def as_text(path: str) -> str:
    """A path of this machine as text that a ledger holds: a `file:` URL if its name is not UTF-8, else the path."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return f"file://{quote(os.fsencode(path))}"
    return path


def absolute(place: str, home: str = "") -> str:
    """The place as every process understands it, whatever folder that stands in; a relative path is taken from home."""
    if is_url(place):
        return place
    return os.path.abspath(os.path.join(home, local_path(place)))  # noqa: PTH100, PTH118 - a link keeps its own name


def plain(place: str) -> str:
    """A place as people read it, and patterns match it: a URL without its options, and with nothing quoted."""
    if not is_url(place):
        return local_path(place)
    return unquote(place.partition("?")[0]) if resolved(place).quoted else place


def shown(place: str) -> str:
    """A place as messages name it: `plain`, with its control characters as escapes."""
    return printable(plain(place))


def below(folder: str, name: str) -> str:
    """The URL of what lies in the folder of a URL, or below it; its options stay the last."""
    if not resolved(folder).quoted:
        return f"{folder.rstrip('/')}/{name}"
    whole, mark, options = folder.partition("?")
    return f"{whole.rstrip('/')}/{quote(name)}{mark}{options}"


def parent(place: str) -> str:
    """The folder that a file lies in."""
    if not (is_url(place) and resolved(place).quoted):
        return place.rpartition("/")[0]
    whole, mark, options = place.partition("?")
    return whole.rpartition("/")[0] + mark + options


def resolved(url: str) -> Resolved:
    """The filesystem of a URL, and the path in it."""
    parts = urlsplit(url)
    filesystem, before = _filesystem(parts.scheme, parts.netloc, parts.query)
    if filesystem is not None:
        return Resolved(filesystem, (before + unquote(parts.path)).rstrip("/") or "/", True)
    import fsspec  # noqa: PLC0415 - whoever reads local files does not load it
    import pyarrow.fs as pa_fs  # noqa: PLC0415

    other, inner = fsspec.core.url_to_fs(url)
    return Resolved(pa_fs.PyFileSystem(pa_fs.FSSpecHandler(other)), inner, False)


@lru_cache(maxsize=256)
def _filesystem(scheme: str, host: str, options: str) -> tuple[Any, str]:
    """A filesystem of Arrow, made once, and what stands before the paths in it; none for a scheme unknown to Arrow."""
    import pyarrow as pa  # noqa: PLC0415 - whoever only compiles does not load Arrow
    import pyarrow.fs as pa_fs  # noqa: PLC0415

    try:
        filesystem, inner = pa_fs.FileSystem.from_uri(f"{scheme}://{host}/{'?' if options else ''}{options}")
    except pa.ArrowInvalid:
        return None, ""
    return filesystem, inner.rstrip("/")
