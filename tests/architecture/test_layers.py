"""The layers in `docs/architecture.md` are the layers of the code."""

from pathlib import Path

import pytest

from tests.architecture.layers import breaches, cycles, floor_of, import_graph, imports_in, layers_in, sources_under

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
