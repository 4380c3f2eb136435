"""The layers and rooms in `docs/architecture.md` are those of the code, and one function builds checkpoints."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.architecture.layers import (
    breaches,
    cycles,
    floor_of,
    import_graph,
    imports_in,
    layers_in,
    room_breaches,
    sources_under,
)

ROOT = Path(__file__).parents[2]
LAYERS = layers_in((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))
SOURCES = sources_under(ROOT)


def test_every_import_points_up_the_list():
    assert breaches(SOURCES, LAYERS) == []


def test_no_modules_import_one_another():
    assert cycles(import_graph(SOURCES)) == []
    assert cycles(import_graph({"a.b": "import a.c", "a.c": "def late():\n    from a.b import name"})) == [
        ["a.b", "a.c"]
    ]


def test_every_module_stands_on_a_floor_or_only_holds_some():
    holding = {package.rpartition(".")[0] for floor in LAYERS for package in floor}
    assert [module for module in SOURCES if module not in holding and floor_of(module, LAYERS) is None] == []


def test_the_ground_imports_nothing_of_ours():
    assert LAYERS[0] == ("dagkit.errors",)
    assert not any(i.imported.startswith("dagkit") for i in imports_in("dagkit.errors", SOURCES["dagkit.errors"]))


FLOORS = (
    ("dagkit.errors",),
    ("dagkit.api",),
    ("dagkit.graph",),
    ("dagkit.compiler", "dagkit.ledger"),
    ("dagkit.backends.spark", "dagkit.render"),
    ("dagkit.cli",),
    ("dagkit_operators",),
    ("apps",),
)


API, FUSE, RENDER, CLI = "dagkit.api.dag", "dagkit.compiler.fuse", "dagkit.render.dot", "dagkit.cli.compiling.plan"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        pytest.param(API, "from dagkit.compiler import compile_application", id="down the list"),
        pytest.param(API, "import dagkit.compiler.rules", id="down the list, as a module"),
        pytest.param(API, "def late():\n    from dagkit.graph import Graph", id="down the list, inside a function"),
        pytest.param(API, "if TYPE_CHECKING:\n    from dagkit.graph import Graph", id="down the list, for types only"),
        pytest.param(API, "importlib.import_module('dagkit.render')", id="down the list, by name"),
        pytest.param(API, "from ..graph import model", id="down the list, relatively"),
        pytest.param(FUSE, "from dagkit.ledger import chain", id="sideways"),
        pytest.param(RENDER, "from dagkit.backends import spark", id="sideways, by the package of both"),
        pytest.param(CLI, "from dagkit_operators import Filter", id="the operators from dagkit"),
        pytest.param(CLI, "from apps.line_filter import app", id="an application from dagkit"),
        pytest.param(CLI, "from dagkit import Dag", id="the face from inside"),
        pytest.param(CLI, "import pyspark", id="pyspark outside the backend"),
        pytest.param(FUSE, "from pyspark.sql import DataFrame", id="a part of pyspark outside the backend"),
        pytest.param(FUSE, "import graphviz", id="graphviz outside render"),
        pytest.param(RENDER, "import networkx as nx", id="networkx outside graph and compiler"),
        ("dagkit_operators.records.filter", "from apps.line_filter import app"),
        ("dagkit.helpers", "from dagkit.errors import Code"),
    ],
)
def test_a_planted_breach_is_found(module, source):
    assert len(breaches({module: source}, FLOORS)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        pytest.param("dagkit.compiler.fuse", "from dagkit.graph import Graph\nimport networkx as nx", id="up the list"),
        pytest.param("dagkit.compiler.fuse", "from dagkit.compiler.order import order", id="inside one package"),
        pytest.param("dagkit.backends.spark.run", "import pyspark", id="pyspark in its backend"),
        ("dagkit", "def drawn():\n    from dagkit.render.formats import mimebundle"),
        pytest.param("dagkit_operators.records.filter", "from dagkit import InputPort", id="operators from the face"),
        ("apps.line_filter.app", "from dagkit import Dag\nfrom dagkit_operators import Filter"),
        ("dagkit.errors", "import difflib\nfrom collections.abc import Iterable"),
    ],
)
def test_a_good_import_is_no_breach(module, source):
    assert breaches({module: source}, FLOORS) == []


ROOMS = layers_in((ROOT / "docs/architecture.md").read_text(encoding="utf-8"), "rooms")
DIVIDED = (
    "dagkit.engine.",
    "dagkit.backends.spark.",
    "dagkit.conf.",
    "dagkit.cli.",
    "dagkit.ledger.",
    "dagkit_operators.",
)


def names_of(module):
    return module.rpartition(".")[2]


def test_every_import_between_rooms_points_up_the_list():
    assert room_breaches(SOURCES, ROOMS) == []


def test_every_module_of_a_divided_package_stands_in_a_room():
    packages = {module.rpartition(".")[0] for module in SOURCES}
    homeless = [m for m in SOURCES if m.startswith(DIVIDED) and m not in packages and floor_of(m, ROOMS) is None]
    assert [module for module in homeless if names_of(module) != "__main__"] == []


def test_no_two_modules_of_dagkit_have_one_name():
    """A name in a traceback or a search leads to one place; a package and a module may share theirs."""
    packages = {module for module in SOURCES if (ROOT / module.replace(".", "/")).is_dir()}
    names = Counter(names_of(m) for m in SOURCES if m.startswith("dagkit.") and m not in packages)
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("dagkit.engine.work.item", "from dagkit.engine.run.loop import Loop", 1),
        ("dagkit.engine.work.item", "from dagkit.engine.files.staging import Part", 1),
        ("dagkit.engine.work.item", "def late():\n    from dagkit.engine.run import loop", 1),
        ("dagkit.engine.run.loop", "from dagkit.engine.work.item import WorkItem", 0),
        ("dagkit.engine.work.item", "from dagkit.engine.work.split import SplitPlanner", 0),
        ("dagkit.engine.work.item", "from dagkit.conf.apply.settings import Settings", 0),
    ],
    ids=["down", "sideways", "down, inside a function", "up", "inside a room", "another package: the layers judge"],
)
def test_a_planted_breach_between_rooms_is_found(module, source, found):
    rooms = (("dagkit.engine.work", "dagkit.engine.files"), ("dagkit.engine.run",), ("dagkit.conf.apply",))
    assert len(room_breaches({module: source}, rooms)) == found


LONGEST_FUNCTION = 40
"""Lines of a function of the rooms that build and commit checkpoints."""
COMMITTING = ("dagkit.engine.record.", "dagkit.engine.parts.", "dagkit.engine.run.")


def builders(source):
    """The functions that call `Checkpoint` with values."""
    return [
        function.name
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Checkpoint"
        if call.args or call.keywords
    ]


def test_one_function_builds_checkpoints_from_the_fields_of_the_parts():
    sources = [source for module, source in SOURCES.items() if module.startswith("dagkit.engine.")]
    found = [name for source in sources if "Checkpoint(" in source for name in builders(source)]
    assert found == ["_checkpoint"]
    assert builders("def other():\n    return [Checkpoint(window=1), Checkpoint()]") == ["other"]


def test_no_function_that_builds_or_commits_a_checkpoint_is_long():
    lengths = {
        f"{module}.{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for module, source in SOURCES.items()
        if module.startswith(COMMITTING)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}
