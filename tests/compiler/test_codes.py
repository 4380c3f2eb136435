"""The list of codes: each is raised somewhere, and nothing is raised that is not on it."""

import ast
from pathlib import Path

import pytest

import dagkit
from dagkit.errors import CODES

SOURCES = [p for p in Path(dagkit.__file__).parent.rglob("*.py") if p.name != "errors.py"]


def _texts(source: Path) -> set[str]:
    nodes = ast.walk(ast.parse(source.read_text()))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.mark.slow
def test_every_code_is_reported_somewhere():
    told = {text for source in SOURCES for text in _texts(source)}
    assert [code for code in CODES if code not in told] == []


def test_codes_are_slugs_and_no_two_are_alike():
    assert len(set(CODES)) == len(CODES)
    assert all(code == code.lower() and code.replace("-", "").isalpha() for code in CODES)
