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

_AZURE_ENDPOINTS = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
"""Variables that name another endpoint than that of an account of Azure, in the order of the ledger's client."""
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", *_AZURE_ENDPOINTS)
"""Variables that name another endpoint than Amazon's or Azure's."""
_OF_AZURE = ("az", "abfs", "abfss")
"""Schemes of Azure."""
_OF_HADOOP = ("hdfs", "viewfs")
"""Schemes that Arrow reads with Hadoop's own library, in a Java."""

MOST_NAME_BYTES = 255
"""The bytes that filesystems allow for the name of a file or folder."""


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


def name_fault(name: str) -> str:
    """Why this cannot be the name of a file in a folder or below it; "" if it can."""
    parts = local_path(name).split("/")
    if any(part in ("", ".", "..") for part in parts):
        return f"{name!r:.200} is no name for a file in a folder"
    if "\0" in name:
        return f"{name!r:.200} contains a NUL"
    if any(len(os.fsencode(part)) > MOST_NAME_BYTES for part in parts):
        return f"{name[:40]!r}… has a part of more than {MOST_NAME_BYTES} bytes"
    return ""


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


def shown_master(url: str) -> str:
    """The URL of a Spark master as messages show it: of a Connect server, without parameters, such as its token."""
    host, parameters, _ = url.partition(";")
    return printable(host.removesuffix("/") if parameters and url.startswith("sc:") else url)


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
    """The filesystem that a URL names, and the path within it. Raise an OSError if nothing here reads it."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise OSError(f"it is no URL: {error}") from error
    filesystem, before = _filesystem(parts.scheme, parts.netloc, parts.query)
    if filesystem is not None:
        return Resolved(filesystem, (before + unquote(parts.path)).rstrip("/") or "/", True)
    import fsspec  # noqa: PLC0415 - reading local files must not load it
    import pyarrow.fs as pa_fs  # noqa: PLC0415

    try:
        other, inner = in_fsspec(url)
    except ImportError as error:
        raise _missing(parts.scheme, str(error)) from error
    except ValueError as error:
        if parts.scheme in fsspec.available_protocols():
            raise
        raise _missing(parts.scheme, "neither Arrow nor fsspec knows it") from error
    return Resolved(pa_fs.PyFileSystem(pa_fs.FSSpecHandler(other)), inner, False)


def in_fsspec(url: str) -> tuple[Any, str]:
    """The filesystem of fsspec that a URL names, and the path within it."""
    if url.startswith("webhdfs://"):
        from dagkit.ground.webhdfs import WebHdfs  # noqa: PLC0415 - others must not load it

        return WebHdfs(**WebHdfs._get_kwargs_from_urls(url)), WebHdfs._strip_protocol(url)  # noqa: SLF001
    from fsspec.core import url_to_fs  # noqa: PLC0415 - reading local files must not load it

    filesystem, inner = url_to_fs(url)
    return filesystem, inner


@lru_cache(maxsize=256)
def _filesystem(scheme: str, host: str, options: str) -> tuple[Any, str]:
    """The Arrow filesystem, made once, and the prefix of paths in it; None if Arrow does not know the scheme."""
    import pyarrow as pa  # noqa: PLC0415 - compiling must not load Arrow
    import pyarrow.fs as pa_fs  # noqa: PLC0415

    if scheme in _OF_AZURE and not options and (azure := _azure(host)) is not None:
        return azure
    try:
        filesystem, inner = pa_fs.FileSystem.from_uri(f"{scheme}://{host}/{'?' if options else ''}{options}")
    except pa.ArrowInvalid:
        return None, ""
    except OSError as error:
        reason, *tried = str(error).split("\ndlopen(")  # each place at which a library was looked for
        if not tried:
            raise
        raise _missing(scheme, reason) from error
    return filesystem, inner.rstrip("/")


def _azure(host: str) -> tuple[Any, str] | None:
    """The filesystem of `CONTAINER`, or of `CONTAINER@ACCOUNT.dfs.…`, and the container; None if the host is neither.

    Account, endpoint and credentials come from the variables that the ledger's client reads: Arrow's reads others.
    """
    from pyarrow.fs import AzureFileSystem  # noqa: PLC0415 - compiling must not load Arrow

    container, _, domain = host.partition("@")
    account = domain.partition(".")[0] or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", "")
    if not account or "." in container or ":" in host or (domain and "." not in domain):
        return None
    endpoint = next(filter(None, map(os.environ.get, _AZURE_ENDPOINTS)), f"https://{account}.blob.core.windows.net")
    parts = urlsplit(endpoint)
    blobs = parts.netloc.removeprefix(account)  # Arrow puts the account before what begins with a dot, else behind it
    credentials = {name: os.environ.get(f"AZURE_STORAGE_{name.upper()}") for name in ("account_key", "sas_token")}
    filesystem = AzureFileSystem(
        account,
        blob_storage_scheme=parts.scheme,
        blob_storage_authority=blobs,
        dfs_storage_scheme=parts.scheme,
        dfs_storage_authority=blobs.replace(".blob.", ".dfs.", 1),
        **dict([item for item in credentials.items() if item[1]][:1]),  # Arrow refuses both
    )
    return filesystem, container


def _missing(scheme: str, reason: str) -> OSError:
    others = {
        **dict.fromkeys(_OF_HADOOP, "; set JAVA_HOME, HADOOP_HOME and CLASSPATH as Hadoop's clients need them"),
        **dict.fromkeys(_OF_AZURE, ", or set AZURE_STORAGE_ACCOUNT_NAME to read it without that"),
    }
    return OSError(f"the filesystem of {scheme}:// is not installed here: {reason}{others.get(scheme, '')}")


def object_store_options() -> dict[str, Any]:
    """Options of obstore: plain HTTP for an endpoint of the environment whose URL begins with `http:`.

    Other clients need no second setting for that.
    """
    _with_object_stores.add(os.getpid())
    plain = any(os.environ.get(name, "").startswith("http://") for name in _ENDPOINTS)
    return {"client_options": {"allow_http": True}} if plain else {}


_with_object_stores: set[int] = set()
"""The processes, this one or those that it was forked from, that made clients of obstore."""


def is_fork_of_client() -> bool:
    """Whether this process was forked from one with clients of obstore.

    It must not use obstore: it lacks the threads of that process, and what it did would reach them through the
    descriptors that both have, and end that process.
    """
    return not _with_object_stores <= {os.getpid()}
