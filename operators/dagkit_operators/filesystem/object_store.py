"""Objects of S3, Google Cloud Storage and Azure with the version of their content, which pyarrow does not report."""

import logging
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from dagkit.ground.urls import is_fork_of_client, object_store_options, shown

SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl")
_S3_OPTIONS = {"endpoint_override", "scheme", "region", "anonymous", "allow_bucket_creation", "allow_bucket_deletion"}
"""The options of pyarrow's S3 URLs that this module understands; a URL with others is read by pyarrow alone."""
_LISTED = 1000
"""Objects in one answer of a store."""

_log = logging.getLogger(__name__)


class StoredObject(NamedTuple):
    """An object in a bucket."""

    key: str
    length: int
    modified_millis: int
    version: str
    """Its version if the bucket keeps versions, else its etag."""


class VersionsUnknown(Exception):
    """The client that reports versions cannot reach the store, with these credentials or options."""


def versioned_below(folder: str) -> Iterator[StoredObject]:
    """All objects below a URL. Raise VersionsUnknown if impossible."""
    import obstore  # noqa: PLC0415 - local files must not load it

    store, prefix = _store_of(folder)
    try:
        for listed in obstore.list(store, prefix=prefix or None, chunk_size=_LISTED):
            yield from map(_found, listed)
    except (obstore.exceptions.BaseError, OSError) as error:
        raise VersionsUnknown(str(error).splitlines()[0]) from error


def versioned_at(url: str) -> StoredObject | None:
    """The object at a URL; None if there is none. Raise VersionsUnknown if impossible."""
    import obstore  # noqa: PLC0415 - local files must not load it

    store, key = _store_of(url)
    if not key:
        return None
    try:
        return _found(obstore.head(store, key))
    except (obstore.exceptions.NotFoundError, FileNotFoundError):
        return None
    except (obstore.exceptions.BaseError, OSError) as error:
        raise VersionsUnknown(str(error).splitlines()[0]) from error


def has_versions(url: str) -> bool:
    """Whether a URL is that of an object store."""
    return url.partition("://")[0] in SCHEMES


@lru_cache(maxsize=256)  # once in each process and place
def log_unknown(folder: str, why: str) -> None:
    """Log that a store is read without versions."""
    _log.warning(
        "the versions of the objects in %s cannot be listed: %s; an object that is overwritten with the same length "
        "within a second is not noticed",
        shown(folder),
        why,
    )


def _found(listed: Any) -> StoredObject:
    millis = int(listed["last_modified"].timestamp() * 1000)
    etag = listed["e_tag"] and '"{}"'.format(listed["e_tag"].strip('"'))  # Azure's listings lack the quotes
    return StoredObject(str(listed["path"]), int(listed["size"]), millis, str(listed["version"] or etag or ""))


def _store_of(url: str) -> tuple[Any, str]:
    # A fork of a process with clients of obstore lacks their threads. A window that the reference backend runs again
    # after its driver was killed is such a fork.
    if is_fork_of_client():
        raise VersionsUnknown("this process is a fork of its driver")
    parts = urlsplit(url)
    return _store(parts.scheme, parts.netloc, parts.query), unquote(parts.path).strip("/")


@lru_cache(maxsize=64)
def _store(scheme: str, host: str, query: str) -> Any:
    import obstore  # noqa: PLC0415 - local files must not load it
    from obstore.store import S3Store, from_url  # noqa: PLC0415

    options = dict(parse_qsl(query))
    try:
        if scheme not in ("s3", "s3a"):
            if options or (scheme not in ("abfs", "abfss") and "@" in host):
                raise VersionsUnknown(f"options in the URL of {scheme}:// are not understood")
            return from_url(f"{scheme}://{host}", **object_store_options())
        if not options.keys() <= _S3_OPTIONS:
            raise VersionsUnknown(f"the options {', '.join(sorted(options.keys() - _S3_OPTIONS))} are not understood")
        keys, _, bucket = host.rpartition("@")
        return S3Store(bucket, **_s3_settings(options, keys))
    except (obstore.exceptions.BaseError, ValueError) as error:
        raise VersionsUnknown(str(error).splitlines()[0]) from error


def _s3_settings(options: dict[str, str], keys: str) -> dict[str, Any]:
    """The settings of obstore that mean the same as the options and the keys in a URL of pyarrow."""
    settings = object_store_options()
    if "endpoint_override" in options:
        scheme = options.get("scheme", "https")
        settings["endpoint"] = (
            f"{scheme}://{options['endpoint_override'].partition('://')[2] or options['endpoint_override']}"
        )
        settings["virtual_hosted_style_request"] = False  # as pyarrow, which names the bucket in the path there
    if options.get("scheme") == "http":
        settings["client_options"] = {"allow_http": True}
    if "region" in options:
        settings["region"] = options["region"]
    if options.get("anonymous") == "true":
        settings["skip_signature"] = True
    if keys:
        identity, _, secret = keys.partition(":")
        settings |= {"access_key_id": unquote(identity), "secret_access_key": unquote(secret)}
    return settings
