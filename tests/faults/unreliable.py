"""A filesystem of fsspec on which operations fail, or succeed without an answer, or return too little."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.local import LocalFileSystem

SCHEME = "unreliable"
SEED = "UNRELIABLE_SEED"
"""The variable with which the storage fails in a process that imports this module."""


class Unreliable(LocalFileSystem):
    """The local filesystem behind a network that fails."""

    protocol = SCHEME
    cachable = False
    chance: ClassVar[Random | None] = Random(os.environ[SEED]) if SEED in os.environ else None  # noqa: S311 - no secret
    """Decides what fails; None: nothing does."""
    share: ClassVar[float] = 0.04
    """The share of operations that fail."""

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        return super()._strip_protocol(str(path).removeprefix(f"{SCHEME}://"))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        before, after = self._fails(), self._fails()
        if before:
            raise _timeout(path)
        super().pipe_file(path, value, mode=mode, **options)
        if after:
            raise _timeout(path)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> Any:
        if self._fails():
            raise _timeout(path)
        content = super().cat_file(path, start=start, end=end, **options)
        return content[: len(content) // 2] if self._fails() else content

    def ls(self, path: str, detail: bool = False, **options: Any) -> Any:
        if self._fails():
            raise _timeout(path)
        return super().ls(path, detail=detail, **options)

    def rm_file(self, path: str) -> None:
        if self._fails():
            raise _timeout(path)
        super().rm_file(path)

    def _fails(self) -> bool:
        return self.chance is not None and self.chance.random() < self.share


def _timeout(path: str) -> OSError:
    return OSError(errno.ETIMEDOUT, "the storage did not answer in time", path)


fsspec.register_implementation(SCHEME, Unreliable, clobber=True)


@contextmanager
def failing_everywhere(folder: Path, seed: float) -> Iterator[None]:
    """Let the storage fail in this process and its children. Workers of Spark find it by the entry point."""
    entry = folder / "unreliable-1.dist-info"
    entry.mkdir(exist_ok=True)
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: unreliable\nVersion: 1\n")
    (entry / "entry_points.txt").write_text(f"[fsspec.specs]\n{SCHEME} = {__name__}:Unreliable\n")
    root = Path(__file__).parents[2]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), str(root)])
    os.environ[SEED] = str(seed)
    Unreliable.chance = Random(seed)  # noqa: S311 - no secret
    try:
        yield
    finally:
        del os.environ[SEED]
        Unreliable.chance = None
