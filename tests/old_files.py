"""Files that a launch reads at once: by default, it waits for those that were changed just now."""

import os
from pathlib import Path
from typing import TypeVar

P = TypeVar("P", bound=Path)


def aged(path: P) -> P:
    """Let a file have changed ten seconds earlier than it did, so that no launch waits for it."""
    earlier = path.stat().st_mtime_ns - 10 * 10**9
    os.utime(path, ns=(earlier, earlier))
    return path


def old_file(path: P, content: str | bytes) -> P:
    """Write such a file, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return aged(path)
