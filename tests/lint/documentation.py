"""Each property of the operator library has a line of documentation below it, and each attribute a meaning."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from dagkit.api.attributes import CONTEXTS
from tests.lint.breach import ROOT, Breach

LIBRARY: Final = ROOT / "operators/dagkit_operators"
CATALOGUE: Final = "dagkit/api/attributes.py"


def properties_and_attributes_are_described() -> Iterator[Breach]:
    for path in sorted(LIBRARY.rglob("*.py")):
        yield from undocumented(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    for context in CONTEXTS:
        for attribute in context.attributes().values():
            if not attribute.meaning or attribute.meaning.endswith("."):
                problem = f"{attribute.qualified} means {attribute.meaning!r}"
                yield Breach(CATALOGUE, 1, problem, "write what it means, without a full stop")


def undocumented(path: Path, source: str) -> Iterator[Breach]:
    """The public properties of models in a module that no text follows. Dataclasses document theirs as a whole."""
    for model in ast.walk(ast.parse(source)):
        if not isinstance(model, ast.ClassDef) or model.decorator_list or "NamedTuple" in map(ast.unparse, model.bases):
            continue
        for statement, following in pairwise([*model.body, ast.Pass()]):
            if not isinstance(statement, ast.AnnAssign) or "ClassVar" in ast.unparse(statement.annotation):
                continue
            name = ast.unparse(statement.target)
            is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            if not name.startswith("_") and not is_text:
                problem = f"{model.name}.{name} has no documentation"
                yield Breach(str(path), statement.lineno, problem, "write a docstring below it")
