"""The names of the operator library: each is imported from its module on first use."""

import ast
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dagkit_operators
from tests.processes import run_program


def homes_for_types() -> dict[str, str]:
    """The module of each name, from the imports that only type checkers see."""
    tree = ast.parse(Path(dagkit_operators.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {name.name: f"{node.module}".removeprefix("dagkit_operators.") for node in imports for name in node.names}


def test_each_name_has_one_home():
    assert homes_for_types() == dagkit_operators._HOMES
    assert sorted(dagkit_operators.__all__) == sorted(homes_for_types())


def test_each_name_is_what_its_module_defines():
    for name, home in homes_for_types().items():
        assert getattr(dagkit_operators, name) is getattr(import_module(f"dagkit_operators.{home}"), name)


def test_an_unknown_name_is_refused():
    with pytest.raises(ImportError, match="cannot import name 'Nothing' from 'dagkit_operators'"):
        from dagkit_operators import Nothing  # noqa: F401, PLC0415


@pytest.mark.slow
def test_an_application_imports_only_the_rooms_that_it_uses():
    code = "import sys; from dagkit_operators import Filter, LineReader; print(*sys.modules)"
    loaded = run_program([sys.executable, "-c", code]).stdout.split()
    assert "dagkit_operators.reading.readers" in loaded
    rooms = {name.split(".")[1] for name in loaded if name.startswith("dagkit_operators.")}
    assert not rooms & {"dataframes", "event_time", "kafka", "queues", "sql", "tables"}
