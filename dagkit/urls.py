"""Places: a path on this machine, or a URL that pyarrow or fsspec can open.

A `file:` URL is a path in which `%FF` is a byte. The query of a URL, after `?`, holds options of its filesystem. Paths
are percent-quoted in URLs that pyarrow knows; fsspec takes them literally.
"""

import os
import re
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

from dagkit.errors import printable

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""Variables that name another endpoint than Amazon's."""


class Resolved(NamedTuple):
    """The filesystem and the path that a URL names."""

    filesystem: Any
    """A filesystem of pyarrow, or one with the same interface."""
    path: str
    """The path within the filesystem."""
    quoted: bool
    """Whether paths in URLs of this scheme are percent-quoted."""


_FILE = re.compile(r"file:(?://[^/?#]*)?([^?#]*).*", re.DOTALL)
"""A `file:` URL, with its path. `urlsplit` fails on some hosts, though none matters here."""


def is_url(place: str) -> bool:
    """Whether the place is a URL of a filesystem. A `file:` URL is not: it names a path on this machine."""
    return "://" in place and not place.startswith("file:")


def local_path(place: str) -> str:
    """The path on this machine. The place must not be a URL (see `is_url`)."""
    url = _FILE.fullmatch(place)
    return place if url is None else os.fsdecode(unquote_to_bytes(os.fsencode(url[1])))


def as_text(path: str) -> str:
    """A local path as text for the ledger: a `file:` URL if its name is not UTF-8, else the path itself."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return f"file://{quote(os.fsencode(path))}"
    return path


def name_as_text(name: str) -> str:
    """A relative local path as text for the ledger: `file:folder/a%FF` if it is not UTF-8, else the path itself.

    `local_path` returns it as it was, also if it begins like a URL.
    """
    return f"file:{quote(os.fsencode(name))}" if name.startswith("file:") or as_text(name) != name else name


def absolute(place: str, home: str = "") -> str:
    """The place as every process understands it, whatever its working directory. A relative path starts at `home`."""
    if is_url(place):
        return place
    return os.path.abspath(os.path.join(home, local_path(place)))  # noqa: PTH100, PTH118 - do not resolve symbolic links


def without_links(place: str) -> str:
    """The place with symbolic links resolved, as paths are compared; a URL without its options."""
    return place.partition("?")[0].rstrip("/") if is_url(place) else os.path.realpath(local_path(place))


def plain(place: str) -> str:
    """The place as people read it and as patterns match it: a URL without its options, and unquoted."""
    if not is_url(place):
        return local_path(place)
    return unquote(place.partition("?")[0]) if resolved(place).quoted else place


def shown(place: str) -> str:
    """The place as messages show it: `plain`, with control characters escaped."""
    return printable(plain(place))


def below(folder: str, name: str) -> str:
    """The URL of the file `name` in the folder that a URL names, or deeper. Options stay at the end."""
    if not resolved(folder).quoted:
        return f"{folder.rstrip('/')}/{name}"
    whole, mark, options = folder.partition("?")
    return f"{whole.rstrip('/')}/{quote(name)}{mark}{options}"


def parent(place: str) -> str:
    """The folder that contains the file."""
    if not (is_url(place) and resolved(place).quoted):
        return place.rpartition("/")[0]
    whole, mark, options = place.partition("?")
    return whole.rpartition("/")[0] + mark + options


def resolved(url: str) -> Resolved:
    """The filesystem that a URL names, and the path within it."""
    parts = urlsplit(url)
    filesystem, before = _filesystem(parts.scheme, parts.netloc, parts.query)
    if filesystem is not None:
        return Resolved(filesystem, (before + unquote(parts.path)).rstrip("/") or "/", True)
    import fsspec  # noqa: PLC0415 - reading local files must not load it
    import pyarrow.fs as pa_fs  # noqa: PLC0415

    other, inner = fsspec.core.url_to_fs(url)
    return Resolved(pa_fs.PyFileSystem(pa_fs.FSSpecHandler(other)), inner, False)


@lru_cache(maxsize=256)
def _filesystem(scheme: str, host: str, options: str) -> tuple[Any, str]:
    """The Arrow filesystem, made once, and the prefix of paths in it; None if Arrow does not know the scheme."""
    import pyarrow as pa  # noqa: PLC0415 - compiling must not load Arrow
    import pyarrow.fs as pa_fs  # noqa: PLC0415

    try:
        filesystem, inner = pa_fs.FileSystem.from_uri(f"{scheme}://{host}/{'?' if options else ''}{options}")
    except pa.ArrowInvalid:
        return None, ""
    return filesystem, inner.rstrip("/")


def object_store_options(endpoint: str | None = None) -> dict[str, Any]:
    """Options of obstore: plain HTTP for an endpoint, given or from the environment, whose URL begins with `http:`.

    Other clients of S3 need no second setting for that.
    """
    endpoints = [endpoint] if endpoint else map(os.environ.get, _ENDPOINTS)
    plain = any(each is not None and each.startswith("http://") for each in endpoints)
    return {"client_options": {"allow_http": True}} if plain else {}
