"""Each property of what the library offers has a line of documentation below it."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import dagkit_operators

LIBRARY = Path(dagkit_operators.__file__).parent


def undocumented(source: str) -> Iterator[str]:
    """The public properties of models in a module that no text follows. Dataclasses document theirs as a whole."""
    for found in ast.walk(ast.parse(source)):
        if not isinstance(found, ast.ClassDef) or found.decorator_list or "NamedTuple" in map(ast.unparse, found.bases):
            continue
        for one, following in pairwise([*found.body, ast.Pass()]):
            is_property = isinstance(one, ast.AnnAssign) and "ClassVar" not in ast.unparse(one.annotation)
            name = ast.unparse(one.target) if isinstance(one, ast.AnnAssign) and is_property else "_"
            is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            if not name.startswith("_") and not is_text:
                yield f"{found.name}.{name}"


def test_each_property_of_the_library_has_a_line_of_documentation() -> None:
    modules = sorted(LIBRARY.rglob("*.py"))
    assert {path.name: [*undocumented(path.read_text(encoding="utf-8"))] for path in modules} == {
        path.name: [] for path in modules
    }


def test_a_property_without_one_is_found() -> None:
    assert [*undocumented('class A(B):\n    one: int = 1\n    two: int\n    "Two."\n    _three: int = 3')] == ["A.one"]
