"""What a worker loads before its first record is little: it starts soon, and needs nothing that is the driver's."""

import ast
import sys
from pathlib import Path

import pytest

import dagkit_operators
from tests.architecture.layers import sources_under

SOURCES = sources_under(Path(__file__).parents[2])
DRIVERS_OWN = ("dagkit.compiler", "dagkit.graph", "dagkit.ledger", "dagkit.conf", "dagkit.engine.run.loop")


LIBRARY = sorted(set(dagkit_operators._HOMES.values()))
"""The modules of the library's names, of which an application loads those that it uses."""


def loaded_with(modules, sources):
    """All of our modules that are loaded with these, each with who imports it; what a function imports is not."""
    found, left = dict.fromkeys(modules, ""), list(modules)
    while left:
        importer = left.pop()
        for name in _at_once(ast.parse(sources[importer])):
            steps = name.split(".")
            for each in (".".join(steps[: depth + 1]) for depth in range(len(steps))):
                if each in sources and each not in found:
                    found[each] = importer
                    left.append(each)
    return found


def _at_once(tree):
    for statement in tree.body:
        match statement:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{alias.name}" for alias in names)


@pytest.mark.parametrize("modules", [["dagkit.backends.spark.window.task"], LIBRARY], ids=["the task", "the library"])
def test_a_worker_loads_nothing_that_is_the_drivers_own(modules):
    found = loaded_with(modules, SOURCES)
    assert len(found) > 20
    assert {each: by for each, by in found.items() if each.startswith(DRIVERS_OWN)} == {}


def test_the_command_line_loads_no_engine_and_no_ledger_before_it_knows_its_command():
    found = loaded_with(["dagkit.cli.group"], SOURCES)
    others = ("dagkit.engine", "dagkit.ledger", "dagkit.compiler", "dagkit.backends")
    assert {name: by for name, by in found.items() if name.startswith(others)} == {}


def test_a_worker_loads_few_packages_that_are_not_ours():
    """`docs/installing.md` lists them: those missing there come with pydantic and with Spark."""
    loaded = loaded_with(["dagkit.backends.spark.window.task", *LIBRARY], SOURCES)
    named = {name.partition(".")[0] for module in loaded for name in _at_once(ast.parse(SOURCES[module]))}
    assert named - sys.stdlib_module_names - {"dagkit", "dagkit_operators"} == {
        *("cloudpickle", "pyarrow", "pydantic"),
        *("annotated_types", "pydantic_core", "typing_extensions"),
        "pyspark",
    }


def test_what_is_loaded_by_others_is_found_and_what_waits_for_a_function_is_not():
    sources = {"a": "from b import c", "b": "def late():\n    import d", "b.c": "import e", "d": "", "e": ""}
    assert loaded_with("a", sources) == {"a": "", "b": "a", "b.c": "a", "e": "b.c"}
