"""Pickles of functions that a worker or the driver cannot import, with what tracebacks need to name their lines."""

import io
import linecache
from collections.abc import Mapping
from types import CodeType
from typing import Any

import cloudpickle

Sources = Mapping[str, tuple[str, ...]]
"""The lines of files of code."""

_NO_FILE = "<dynamic-code>"
"""What cloudpickle writes from 3.1.3 on instead of the name of a file of code."""


class CodePickler(cloudpickle.Pickler):  # type: ignore[misc] # cloudpickle has no types
    """Writes code with the name of its file, and collects these names."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.code_files: dict[str, None] = {}

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, CodeType):
            self.code_files[obj.co_filename] = None
            build, fields = self.dispatch_table[CodeType](obj)
            return build, tuple(obj.co_filename if field == _NO_FILE else field for field in fields)
        return super().reducer_override(obj)

    def sources(self) -> Sources:
        """The lines of the files of all code written so far, including the cells of notebooks."""
        lines = {name: tuple(linecache.getlines(name)) for name in self.code_files}
        return {name: text for name, text in lines.items() if text}


def dumps(value: Any) -> bytes:
    """Pickle a value; its functions keep the names of their files."""
    with io.BytesIO() as file:
        CodePickler(file).dump(value)
        return file.getvalue()


def remember(sources: Sources) -> None:
    """Let this process find the lines of files that it may lack, for tracebacks and inlined lambdas."""
    for name, lines in sources.items():
        # Without a time of change, linecache compares the lines with no file, which this machine may lack.
        linecache.cache[name] = sum(map(len, lines)), None, list(lines), name
