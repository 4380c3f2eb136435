"""The layers in `docs/architecture.md` are the layers of the code."""

from pathlib import Path

import pytest

from tests.architecture.layers import breaches, floor_of, imports_in, layers_in, sources_under

ROOT = Path(__file__).parents[2]
LAYERS = layers_in((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))
SOURCES = sources_under(ROOT)


def test_every_import_points_up_the_list():
    assert breaches(SOURCES, LAYERS) == []


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


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("dagkit.api.dag", "from dagkit.compiler import compile_application"),
        ("dagkit.api.dag", "import dagkit.compiler.rules"),
        ("dagkit.api.dag", "def late():\n    from dagkit.graph import Graph"),
        ("dagkit.api.dag", "if TYPE_CHECKING:\n    from dagkit.graph import Graph"),
        ("dagkit.api.dag", "importlib.import_module('dagkit.render')"),
        ("dagkit.api.dag", "from ..graph import model"),
        ("dagkit.compiler.fuse", "from dagkit.ledger import chain"),
        ("dagkit.render.dot", "from dagkit.backends import spark"),
        ("dagkit.cli.compiling.plan", "from dagkit_operators import Filter"),
        ("dagkit.cli.compiling.plan", "from apps.line_filter import app"),
        ("dagkit.cli.compiling.plan", "from dagkit import Dag"),
        ("dagkit.cli.compiling.plan", "import pyspark"),
        ("dagkit.compiler.fuse", "from pyspark.sql import DataFrame"),
        ("dagkit.compiler.fuse", "import graphviz"),
        ("dagkit.render.dot", "import networkx as nx"),
        ("dagkit_operators.records.filter", "from apps.line_filter import app"),
        ("dagkit.helpers", "from dagkit.errors import Code"),
    ],
    ids=[
        "down the list",
        "down the list, as a module",
        "down the list, inside a function",
        "down the list, for types only",
        "down the list, by name",
        "down the list, relatively",
        "sideways",
        "sideways, by the package of both",
        "the operators from dagkit",
        "an application from dagkit",
        "the face from inside",
        "pyspark outside the backend",
        "a part of pyspark outside the backend",
        "graphviz outside render",
        "networkx outside graph and compiler",
        "an application from the operators",
        "from a module that stands nowhere",
    ],
)
def test_a_planted_breach_is_found(module, source):
    assert len(breaches({module: source}, FLOORS)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("dagkit.compiler.fuse", "from dagkit.graph import Graph\nimport networkx as nx"),
        ("dagkit.compiler.fuse", "from dagkit.compiler.order import order"),
        ("dagkit.backends.spark.run", "import pyspark"),
        ("dagkit", "def drawn():\n    from dagkit.render.notebook import mimebundle"),
        ("dagkit_operators.records.filter", "from dagkit import InputPort"),
        ("apps.line_filter.app", "from dagkit import Dag\nfrom dagkit_operators import Filter"),
        ("dagkit.errors", "import difflib\nfrom collections.abc import Iterable"),
    ],
    ids=[
        "up the list",
        "inside one package",
        "pyspark in its backend",
        "the face may look down",
        "operators from the face",
        "an application from the face and the operators",
        "the standard library",
    ],
)
def test_a_good_import_is_no_breach(module, source):
    assert breaches({module: source}, FLOORS) == []
