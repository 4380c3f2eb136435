"""One function builds the checkpoint of a window, from the fields that the parts of a run compute."""

import ast
from pathlib import Path

from tests.architecture.layers import sources_under

SOURCES = sources_under(Path(__file__).parents[2])
LONGEST_FUNCTION = 40
"""Lines of a function of the rooms that build and commit checkpoints."""
ROOMS = ("dagkit.engine.record.", "dagkit.engine.parts.", "dagkit.engine.run.")


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
        if module.startswith(ROOMS)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}
