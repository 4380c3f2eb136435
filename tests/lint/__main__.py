"""Check the words and lists of this project, and the forms of its tests: `make lint` runs this.

    python -m tests.lint

Each line of output is a file, a line, what is wrong, and what to do. The exit code is 1 if there is one.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Final

from tests.lint import apex_page, cases, documentation, forms, pages, words
from tests.lint.breach import Breach

CHECKS: Final[tuple[Callable[[], Iterator[Breach]], ...]] = (
    words.words_have_plain_replacements,
    pages.records_have_their_parts,
    pages.codes_and_headings_agree,
    apex_page.attributes_stand_in_their_table,
    apex_page.attributes_have_an_effect,
    apex_page.names_of_apex_have_rows,
    documentation.properties_and_attributes_are_described,
    pages.fences_and_links_are_right,
    pages.pages_name_tests_that_exist,
    cases.cases_have_tests,
    forms.tests_depend_on_no_machine,
)


def main() -> int:
    breaches = [breach for check in CHECKS for breach in check()]
    for breach in breaches:
        print(breach)  # noqa: T201 - a command prints its result
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
