"""The pages: each fence has a known kind and shows something; quotations, links and `make` targets exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.fences import ROOT, Fence, documents, fences_in
from tests.lint.breach import Breach, line_of


def fences_and_links_are_right() -> Iterator[Breach]:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in documents():
        fences = fences_in(document)
        for fence in fences:
            yield from _of_fence(fence, targets)
        if document.name != "errors.md":
            yield from _without_effect(fences)
        yield from _lost_links(document)


def _of_fence(fence: Fence, targets: set[str]) -> Iterator[Breach]:
    if not fence.is_known:
        yield Breach(fence.document, fence.line, f"an unknown fence, {fence.info!r}", "see tests/docs/fences.py")
    if fence.excerpt_of and fence.text not in (ROOT / fence.excerpt_of).read_text(encoding="utf-8"):
        yield Breach(fence.document, fence.line, f"{fence.excerpt_of} does not hold this text", "copy it again")
    named = re.findall(r"^make ([a-z-]+)", fence.text, re.MULTILINE) if fence.info == "sh" else []
    for target in sorted(set(named) - targets):
        yield Breach(fence.document, fence.line, f"make has no target {target}", "name one of the Makefile")


def _without_effect(fences: tuple[Fence, ...]) -> Iterator[Breach]:
    """Programs that neither assert nor print, and define nothing that a later one uses."""
    later = "\n".join(fence.text for fence in fences if fence.language in ("python", "console"))
    for fence in fences:
        if fence.language != "python" or fence.excerpt_of or re.search(r"\b(assert|print)\b", fence.text):
            continue
        later = later.partition(fence.text)[2]
        names = {n.name for n in ast.parse(fence.text).body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
        names |= {(fence.file_name or "").removesuffix(".py")} - {""}
        if not any(re.search(rf"\b{name}\b", later) for name in names):
            yield Breach(fence.document, fence.line, "this program shows nothing", "let it print or assert something")


def _lost_links(document: Path) -> Iterator[Breach]:
    text, path = document.read_text(encoding="utf-8"), document.relative_to(ROOT).as_posix()
    prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", text, flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", prose):
        if not (document.parent / target).exists():
            yield Breach(path, line_of(text, f"]({target}"), f"there is no {target}", "link to a page that exists")
