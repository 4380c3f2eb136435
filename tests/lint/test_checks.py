"""Each check finds a planted breach, and accepts what is right."""

from pathlib import Path

import pytest

from tests.lint import documentation, forms, pages, words
from tests.lint.words import paragraphs, texts_of_code

SOURCE = '''"""Whoever reads this."""
# nobody knows
# what it says
X = "it tells what is"
Y = "plain"

def test_it_goes_anew(): ...
'''


def test_words_are_found_in_docstrings_comments_messages_and_names_of_tests():
    breaches = [breach for text in texts_of_code("a.py", SOURCE) for breach in words.breaches_in(text)]
    assert sorted((breach.line, breach.problem) for breach in breaches) == [
        (1, "'Whoever' in a docstring"),
        (2, "'nobody' in a comment"),
        (4, "'tells' in a message"),
        (7, "'anew' in a name"),
    ]


def test_paragraphs_rows_and_entries_are_texts_and_fenced_blocks_are_not():
    document = "# One\n\nTwo\nlines.\n\n* an entry\n* another\n\n```text\nfenced\n```\n| a | row |\n"
    assert [text.line for text in paragraphs("a.md", document)] == [1, 3, 6, 7, 12]


def test_a_record_has_its_number_and_its_parts():
    path = Path("docs/decisions/0001-one.md")
    right = "# 0001: One\n\n**Context.** a\n\n**Choice.** b\n\n**Cost.** c\n"
    assert list(pages.breaches_of(path, right)) == []
    assert len(list(pages.breaches_of(path, right.replace("0001", "0002")))) == 1
    assert len(list(pages.breaches_of(path, right.replace("**Cost.**", "Cost:")))) == 1


def test_a_property_without_documentation_is_found():
    source = 'class A(B):\n    one: int = 1\n    two: int\n    "Two."\n    _three: int = 3'
    (breach,) = documentation.undocumented(Path("a.py"), source)
    assert (breach.line, breach.problem) == (2, "A.one has no documentation")


FOUND = [
    *("assert time.monotonic() - began < 5", "assert began < 5", "assert small.seconds < 10", "assert spent <= 60"),
    *("assert threading.active_count() == 1", "time.sleep(1)", "process.wait()", "thread.join()"),
    *("process.communicate(data='x')", "subprocess.run(['ls'], check=True)", "serve_server(port=8080)"),
]
ACCEPTED = [
    *("assert timedelta(seconds=5) < longest", "assert time.monotonic() < until", "assert spent == {'a': 1}"),
    *("time.sleep(600)  # sleeps: the test ends it", "process.wait(within(5))", "', '.join(names)"),
    *("process.communicate(timeout=within(5))", "subprocess.run(['ls'], timeout=within(5))", "serve_server(port=0)"),
]


@pytest.mark.parametrize("line", FOUND)
def test_a_form_that_depends_on_the_machine_is_found(line):
    source = f"began = time.monotonic()\ndef test_it():\n    {line}\n"
    assert [breach.line for breach in forms.breaches_in("test_a.py", source)] == [3]
    assert list(forms.breaches_in("test_a.py", source.replace("def", "@pytest.mark.trial\ndef"))) == []
    assert list(forms.breaches_in("test_a.py", f"pytestmark = [pytest.mark.trial]\n{source}")) == []


@pytest.mark.parametrize("line", ACCEPTED)
def test_what_no_machine_decides_is_accepted(line):
    assert list(forms.breaches_in("test_a.py", f"def test_it():\n    {line}\n")) == []
