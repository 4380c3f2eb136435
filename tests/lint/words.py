"""Words that readers stumble over, each with the plainer one."""

import re
from collections.abc import Iterator
from typing import Final

from tests.lint.breach import Breach
from tests.lint.texts import Text, texts

CODE: Final = ("dagkit", "operators", "apps", "bench", "hatch_build.py", "docs", "README.md", "CONTRIBUTING.md")
TESTS: Final = ("tests", "conftest.py")
REPLACEMENTS: Final = {
    r"whoever|somebody": "name the actor: the reader, the driver, an operator",
    r"nobody": "name the actor: no operator, no process",
    r"anew": "write: again",
    r"slips?": "write: mistake",
    r"mend(?:s|ed|ing)?": "write: fix, repair",
    r"tells?|telling|told": "write: report, return, print, say what",
}
_PLAINER: Final = {re.compile(rf"\b({word})\b", re.IGNORECASE): help_ for word, help_ in REPLACEMENTS.items()}
_ANY: Final = re.compile("|".join(REPLACEMENTS), re.IGNORECASE)


def words_have_plain_replacements() -> Iterator[Breach]:
    """Everything that users and maintainers read; the strings of tests are data."""
    for text in texts(CODE):
        yield from breaches_in(text)
    for text in texts(TESTS):
        if text.kind != "message":
            yield from breaches_in(text)


def breaches_in(text: Text) -> Iterator[Breach]:
    if not _ANY.search(text.text):
        return
    for word, help_ in _PLAINER.items():
        for match in word.finditer(text.text):
            line = text.line + text.text.count("\n", 0, match.start())
            yield Breach(text.path, line, f"{match[1]!r} in a {text.kind}", help_)
