"""The project's texts are written in the field's words; `tests.architecture.words` counts them."""

import ast

import pytest

from tests.architecture.words import CODE, DOCUMENTS, PRIVATE, ROOT, TESTS, paragraphs, share, texts, texts_of_code

MOST = 0.007
"""The share of texts that may use a word which readers stumble over: some are quotations, or names in data formats."""
TEXTS = tuple(texts(homes=(*CODE, *DOCUMENTS)))
TEXTS_OF_TESTS = tuple(texts(homes=TESTS))


@pytest.mark.parametrize("kind", ["docstring", "comment", "message", "paragraph"])
def test_texts_are_written_in_the_fields_words(kind: str) -> None:
    found = [text for text in TEXTS if text.kind == kind]
    assert len(found) > 100
    assert share(found) < MOST, [f"{text.path}:{text.line}: {', '.join(text.words)}" for text in found if text.words]


@pytest.mark.parametrize("kind", ["docstring", "comment", "message"])
def test_texts_of_tests_are_written_in_the_fields_words(kind: str) -> None:
    found = [text for text in TEXTS_OF_TESTS if text.kind == kind]
    assert len(found) > 100
    assert share(found) < MOST, [f"{text.path}:{text.line}: {', '.join(text.words)}" for text in found if text.words]


def test_names_of_tests_are_written_in_the_fields_words() -> None:
    names = [
        node.name
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert len(names) > 1000
    assert [name for name in names if PRIVATE.search(name.replace("_", " "))] == []


SOURCE = '''"""Whoever reads this."""
# nobody knows
# what it says
X = "it tells what is"
Y = "plain"
'''


def test_docstrings_comments_and_messages_are_found_with_their_lines() -> None:
    found = [(text.line, text.kind, text.words) for text in texts_of_code("a.py", SOURCE)]
    assert found == [(1, "docstring", ["Whoever"]), (4, "message", ["tells"]), (2, "comment", ["nobody"])]


def test_paragraphs_rows_and_entries_are_texts_and_fenced_blocks_are_not() -> None:
    document = "# Told\n\nOne\nparagraph.\n\n* an entry\n* another, anew\n\n```text\nnobody\n```\n| a | row |\n"
    found = [(text.line, bool(text.words)) for text in paragraphs("a.md", document)]
    assert found == [(1, True), (3, False), (6, False), (7, True), (12, False)]
