"""The sizes of blocks that filesystems suggest."""

from urllib.parse import parse_qs, urlsplit

from dagkit.urls import is_url
from dagkit_operators.payloads import BLOCK_SIZE

HDFS = ("hdfs", "viewfs", "webhdfs", "swebhdfs")
HDFS_BLOCK = 128 << 20
"""The default of `dfs.blocksize`."""


def block_size_of(path: str) -> int:
    """The bytes of a block on the filesystem of a path: those of HDFS, whose hosts hold blocks; else the default.

    A disk's own blocks are of 4 KiB, and object stores have none. The option `default_block_size` of a URL of HDFS, by
    which its client writes files, takes precedence.
    """
    parts = urlsplit(path) if is_url(path) else None
    if parts is None or parts.scheme not in HDFS:
        return BLOCK_SIZE
    (given,) = parse_qs(parts.query).get("default_block_size", ["0"])[-1:]
    return int(given) if given.isdecimal() and int(given) else HDFS_BLOCK
