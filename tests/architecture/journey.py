"""Count the modules of dagkit that a block passes from its discovery to the commit of its window.

    python -m tests.architecture.journey

An application of three operators runs as workers run it, without Spark, while every call is watched. A module is on
the block's way if one of its functions is called with the block, or with a value that holds it, as an argument. What a
dataclass writes itself, such as its constructor, is no function of a module.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

from dagkit import Config, Dag
from dagkit.api.work import Block
from dagkit.engine.work.item import WorkItem
from tests.backends.slots import InSlots
from tests.engine.cast import Desk, Hurried

PACKAGE = "dagkit."
DEEPEST = 3
"""How many values within one another are opened to look for a block."""
MOST = 50
"""How many members of a collection are looked at."""


def application(home: Path) -> Callable[[Dag, Config], None]:
    """An application that splits one file into blocks, reads them and writes what it read."""
    from dagkit_operators import FileSplitterInput, Filter, LineReader, RecordWriter  # noqa: PLC0415 - the library stands above dagkit's tests of architecture

    def populate_dag(dag: Dag, conf: Config) -> None:
        found = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": [str(home / "in")]}, block_size=40))
        read = dag.add_operator("Reader", LineReader())
        kept = dag.add_operator("Filter", Filter(lambda line: not line.startswith(".")))
        written = dag.add_operator("Writer", RecordWriter(file_path=str(home / "out")))
        dag.add_stream("blocks", found.blocks_metadata_output, read.blocks_metadata_input)
        dag.add_stream("lines", read.messages, kept.input)
        dag.add_stream("kept", kept.output, written.input)

    return populate_dag


def modules_passed(home: Path) -> Counter[str]:
    """How many calls of each module were given a block."""
    (home / "in").mkdir()
    (home / "in" / "text").write_text("".join(f"line {number}\n" for number in range(40)))
    # a window without a deadline: otherwise a slow machine splits blocks, and what is left of them passes more modules
    desk = Desk(home, application(home), backend=lambda backend: Hurried(InSlots(backend.compilation), 1e9))
    passed: Counter[str] = Counter()
    names: dict[CodeType, str | None] = {}

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in names:
            module = str(frame.f_globals.get("__name__", ""))
            names[code] = module if module.startswith(PACKAGE) and code.co_filename != "<string>" else None
        module_name = names[code]
        if module_name is not None and any(holds(value) for value in _arguments(frame)):
            passed[module_name] += 1

    threading.setprofile(watch)  # windows run in threads of their own
    sys.setprofile(watch)
    try:
        desk.run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return passed


def _arguments(frame: FrameType) -> Iterator[Any]:
    code = frame.f_code
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        if name not in ("self", "cls") and name in frame.f_locals:
            yield frame.f_locals[name]


def holds(value: Any, depth: int = DEEPEST) -> bool:
    """Whether a value is a block or a work item, or a plain value that holds one."""
    if isinstance(value, Block | WorkItem):
        return True
    if depth == 0 or isinstance(value, str | bytes | int | float | type(None)):
        return False
    if isinstance(value, list | tuple | set | frozenset):
        return any(holds(member, depth - 1) for member in islice(value, MOST))
    if isinstance(value, Mapping):
        return any(holds(member, depth - 1) for member in islice(value.values(), MOST))
    if is_dataclass(value) and not isinstance(value, type):
        return any(holds(getattr(value, field.name, None), depth - 1) for field in fields(value))
    return False


def main() -> None:
    with TemporaryDirectory() as home:
        passed = modules_passed(Path(home))
    for module, calls in sorted(passed.items()):
        print(f"{calls:6d}  {module}")  # noqa: T201 - a command prints its result
    print(f"{len(passed)} modules")  # noqa: T201


if __name__ == "__main__":
    main()
