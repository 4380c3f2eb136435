"""`docs/errors.md` has a heading for each code, in the order of the lists, with a fault and its repair."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from dagkit.errors import CODES, RUN_CODES
from tests.docs.fences import ROOT, Fence, fences_in, headings_in
from tests.lint.breach import Breach, line_of

PAGE: Final = "docs/errors.md"


def codes_and_headings_agree() -> Iterator[Breach]:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    headings, codes = headings_in(ROOT / PAGE, 2), [*CODES, *RUN_CODES]
    for heading, code in zip_longest(headings, codes):
        if heading != code:
            help_ = "dagkit.errors lists the codes, in the order of the page"
            yield Breach(PAGE, line_of(text, f"\n## {heading}") + 1, f"{heading} stands in the place of {code}", help_)
            break
    fences = fences_in(ROOT / PAGE)
    for code in codes:
        shown = [fence for fence in fences if fence.heading == code]
        for part, is_part in (("fault", is_cause), ("repair", is_cure)):
            if not any(map(is_part, shown)):
                problem, line = f"{code} shows no {part}", line_of(text, f"\n## {code}\n") + 1
                yield Breach(PAGE, line, problem, f"add a fence whose role is {part}, as `python {part}`")


def is_cause(fence: Fence) -> bool:
    """Whether running the fence gives the code of its heading."""
    return fence.role == "fault" or fence.info.startswith("console exits")


def is_cure(fence: Fence) -> bool:
    """Whether running the fence succeeds, in the same folder."""
    return fence.role == "repair" or fence.info == "console"
