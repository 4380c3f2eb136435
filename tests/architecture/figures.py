"""Print the size and the shape of the code: `python -m tests.architecture.figures`.

The walks launch a small application on the reference backend. They count the modules whose functions get or return one
block, from its discovery to its commit; those that run from the reading of a property to its field; and those that run
before the first window.
"""

import ast
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir
from dataclasses import fields, is_dataclass
from inspect import CO_OPTIMIZED
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

from pydantic import BaseModel

from dagkit.cli.group import main as dagkit
from tests.architecture.layers import cycles, import_graph, layers_in, sources_under

ROOT = Path(__file__).parents[2]
WIDE = 12
"""A class with more attributes than this is listed."""
DEEP = 1
"""How far a walk looks into an argument for the value that it follows."""


def main() -> None:
    """Print each figure on a line."""
    sources = {name: text for name, text in sources_under(ROOT).items() if not name.startswith("apps")}
    trees = {name: ast.parse(text) for name, text in sources.items()}
    rows = [*_sizes(sources), *_shape(sources, trees), *_documents(), *_walks()]
    width = max(len(name) for name, _ in rows)
    for name, figure in rows:
        print(f"{name:<{width}}  {figure}")  # noqa: T201 - a command prints its result


def _sizes(sources: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    lengths = {name: len(text.splitlines()) for name, text in sources.items()}
    for area in ("", "dagkit.engine", "dagkit.backends", "dagkit_operators"):
        yield f"lines of {area or 'the product'}", sum(n for name, n in lengths.items() if name.startswith(area))
    modules = [n for n in lengths.values() if n > 1]
    yield "modules", len(modules)
    yield "median lines of a module", median(modules)
    yield "lines of loop and committer", sum(lengths.get(f"dagkit.engine.run.{name}", 0) for name in ("loop", "commit"))
    yield (
        "lines of tests",
        sum(
            len(path.read_text(encoding="utf-8").splitlines())
            for folder in ("tests", "apps")
            for path in (ROOT / folder).rglob("*.py")
            if folder == "tests" or "tests" in path.parts or path.name.startswith("test_")
        ),
    )


def _shape(sources: Mapping[str, str], trees: Mapping[str, ast.Module]) -> Iterator[tuple[str, object]]:
    yield "layers", len(layers_in((ROOT / "docs/architecture.md").read_text(encoding="utf-8")))
    imports = import_graph(sources)
    rooms = {(_room(a), _room(b)) for a, b in imports.edges if _room(a) and _room(b) and _room(a) != _room(b)}
    yield "rooms of the engine", len({room for arrow in rooms for room in arrow})
    yield "arrows between rooms of the engine", len(rooms)
    yield "cycles of modules", len(cycles(imports))
    wide = sorted(
        ((_width(node), f"{name}.{node.name}") for name, tree in trees.items() for node in _classes(tree)), reverse=True
    )
    in_a_run = [(n, name) for n, name in wide if n > WIDE and name.startswith(("dagkit.engine", "dagkit.backends"))]
    yield f"classes of a run with more than {WIDE} attributes", len(in_a_run)
    for width, name in in_a_run[:10]:
        yield f"    {name}", width
    yield "chains of three dots", sum(_chains(tree) for tree in trees.values())
    yield "exception classes", sum(_is_exception(node) for tree in trees.values() for node in _classes(tree))
    yield (
        "own-line comments",
        sum(line.lstrip().startswith("# ") for text in sources.values() for line in text.splitlines()),
    )


def _room(module: str) -> str | None:
    """The room of the engine that a module stands in; a module that stands alone is a room."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["dagkit", "engine"] and len(parts) > 2 else None


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _width(node: ast.ClassDef) -> int:
    """The number of attributes that a class declares, or that its methods assign."""
    declared = {
        part.target.id
        for part in node.body
        if isinstance(part, ast.AnnAssign)
        and isinstance(part.target, ast.Name)
        and "ClassVar" not in ast.unparse(part.annotation)
    }
    assigned = {
        part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Store)
        and isinstance(part.value, ast.Name)
        and part.value.id == "self"
    }
    return len(declared | assigned)


def _chains(tree: ast.Module) -> int:
    """How often a name is followed by three dots or more: `self.run.queue.items`."""
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return sum(_dots(node) >= 3 for node in ast.walk(tree) if isinstance(node, ast.Attribute) and id(node) not in inner)


def _dots(node: ast.expr) -> int:
    dots = 0
    while isinstance(node, ast.Attribute):
        dots, node = dots + 1, node.value
    return dots if isinstance(node, ast.Name) else 0


def _is_exception(node: ast.ClassDef) -> bool:
    return any("code" in {getattr(t, "id", "") for t in getattr(part, "targets", [])} for part in node.body) or any(
        ast.unparse(base).endswith(("Error", "Exception", "Failure", "Refused")) for base in node.bases
    )


def _documents() -> Iterator[tuple[str, object]]:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "docs").rglob("*.md")}
    lengths[ROOT / "README.md"] = len((ROOT / "README.md").read_text(encoding="utf-8").splitlines())
    yield "lines of documents outside errors.md", sum(n for path, n in lengths.items() if path.name != "errors.md")
    yield "decision records", sum(path.parent.name == "decisions" for path in lengths)


# ---- walks

_WALK = """
from pydantic import field_validator
from dagkit import StreamingApplication
from dagkit_operators import DirectoryScanner, FileSplitterInput, LineReader, Map, PartWriter

class Mark(Map[object, str]):
    text: str = ""

    @field_validator("text")
    def arrived(cls, text):
        return text

class Walk(StreamingApplication):
    def populate_dag(self, dag, conf):
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner=DirectoryScanner(files=["walked-block.txt"])))
        reader = dag.add_operator("Reader", LineReader())
        mark = dag.add_operator("Mark", Mark(str))
        writer = dag.add_operator("Writer", PartWriter(file_path="out"))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, mark.input)
        dag.add_stream("marked", mark.output, writer.input)
"""


def _walks() -> Iterator[tuple[str, object]]:
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("walk.py").write_text(_WALK, encoding="utf-8")
        Path("walked-block.txt").write_text("a\nb\n", encoding="utf-8")
        Path("walk.properties").write_text("dt.operator.Mark.prop.text=walked-property\n", encoding="utf-8")
        walks = _launch(["launch", "walk.py", "--reference", "--once", "--quiet", "-c", "walk.properties"])
    for name, modules in walks.items():
        yield f"modules on the walk of {name}", len(modules)
        if "-v" in sys.argv:
            yield "", " ".join(sorted(modules))


def _launch(arguments: list[str]) -> Mapping[str, set[str]]:
    """Run a command under a profiler; return the modules of each walk."""
    launch: set[str] = set()
    block: set[str] = set()
    prop: set[str] = set()
    begun: set[str] = set()
    """Which of the marks below have been passed."""
    marks = {"Mark.arrived", "Loop.run", "Loop._start", "Committer.commit"}

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        name = frame.f_code.co_qualname
        # The validator runs for the default value, too, long before the value of the file arrives.
        is_early = name == "Mark.arrived" and frame.f_locals.get("text") != "walked-property"
        if name in marks and not is_early and (event == "return") == (name == "Committer.commit"):
            begun.add(name)
        module = frame.f_globals.get("__name__", "")
        # The body of a module or a class is no function, and `__create_fn__` is how a dataclass is made on import.
        is_function = frame.f_code.co_flags & CO_OPTIMIZED and name != "__create_fn__"
        if event not in ("call", "return") or not is_function or not module.startswith("dagkit."):
            return
        values = list(frame.f_locals.values()) if event == "call" else [arg]
        if "Loop._start" not in begun:
            launch.add(module)
        if "Mark.arrived" not in begun and (prop or any(_holds(value, "walked-property", DEEP) for value in values)):
            prop.add(module)
        in_a_run = "Loop.run" in begun and "Committer.commit" not in begun
        if in_a_run and module not in block and any(_holds(value, "walked-block", DEEP) for value in values):
            block.add(module)

    sys.setprofile(profile)
    try:
        dagkit(arguments, standalone_mode=False)
    finally:
        sys.setprofile(None)
    assert begun == marks, f"the walks did not pass {marks - begun}"
    return {"a block": block, "a property": prop, "a launch to its first window": launch}


def _holds(value: object, text: str, depth: int) -> bool:
    """Whether a value is a text that contains this one, or holds such a text."""
    if isinstance(value, str):
        return text in value
    if depth == 0:
        return False
    if isinstance(value, list | tuple | set | frozenset):
        return any(_holds(part, text, depth - 1) for part in list(value)[:50])
    if isinstance(value, dict):
        return any(_holds(part, text, depth - 1) for part in list(value.values())[:50])
    if isinstance(value, BaseModel):
        return any(_holds(part, text, depth - 1) for part in value.__dict__.values())
    if is_dataclass(value) and not isinstance(value, type):
        return any(_holds(getattr(value, field.name, None), text, depth - 1) for field in fields(value))
    return False


if __name__ == "__main__":
    main()
