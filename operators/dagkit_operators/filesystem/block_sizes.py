"""The sizes of blocks that filesystems suggest."""

from functools import lru_cache
from urllib.parse import parse_qs, urlsplit

from dagkit.ground.urls import is_url, resolved
from dagkit_operators.filesystem.object_store import SCHEMES
from dagkit_operators.payloads import BLOCK_SIZE

HDFS = ("hdfs", "viewfs", "webhdfs", "swebhdfs")
HDFS_BLOCK = 128 << 20
"""The default of `dfs.blocksize`."""
LEAST = 1 << 20
"""The shortest block that is used: shorter ones are those of disks, not of hosts that hold a part of a file."""

_WITHOUT: set[tuple[str, str]] = set()
"""The schemes and hosts of filesystems that named no block of a file, so that they are not asked for each file."""


def block_size_of(path: str) -> int:
    """The bytes of a block on the filesystem of a path, if hosts hold blocks there; else the default.

    The option `default_block_size` of a URL of HDFS, by which its client writes files, comes first; then what a
    filesystem of fsspec reports for the file; then the default of HDFS. Disks and object stores have no such blocks.
    """
    parts = urlsplit(path) if is_url(path) else None
    if parts is None or parts.scheme in SCHEMES:
        return BLOCK_SIZE
    (given,) = parse_qs(parts.query).get("default_block_size", ["0"])[-1:]
    if parts.scheme in HDFS and given.isdecimal() and int(given):
        return int(given)
    default = HDFS_BLOCK if parts.scheme in HDFS else BLOCK_SIZE
    if parts.scheme in ("hdfs", "viewfs") or (parts.scheme, parts.netloc) in _WITHOUT:  # Arrow reports no blocks
        return default
    try:
        reported = _reported(path)
    except FileNotFoundError:  # its reader reports that it is gone
        return default
    if not reported:
        _WITHOUT.add((parts.scheme, parts.netloc))
    return reported or default


@lru_cache(maxsize=4096)
def _reported(url: str) -> int:
    """The bytes of a block of a file as its filesystem of fsspec reports them; 0 if it does not."""
    handler = getattr(resolved(url).filesystem, "handler", None)  # None: a filesystem of Arrow
    info = {} if handler is None else handler.fs.info(resolved(url).path)
    size = info.get("block_size", info.get("blockSize"))  # the second is the name of WebHDFS
    return size if isinstance(size, int) and size >= LEAST else 0
