"""CRC-32 in the fastest implementation that is installed."""

try:
    from isal.isal_zlib import crc32
except ImportError:  # workers need not have isal: zlib gives the same numbers, ten times slower
    from zlib import crc32

__all__ = ["crc32"]
