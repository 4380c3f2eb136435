"""What README and docs show is true: every program runs, and prints what the page says it prints."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.fences import ROOT, Fence, documents, fences_in
from tests.docs.running import Room, lengthen_windows

ALL_FENCES = [(document, fence) for document in documents() for fence in fences_in(document)]
SHOWN = [document for document in documents() if document.name != "errors.md" and fences_in(document)]


def _is_run(fence: Fence) -> bool:
    return fence.language == "python" and fence.role == ""


@pytest.mark.parametrize("document", SHOWN, ids=lambda d: d.relative_to(ROOT).as_posix())
def test_a_document_shows_what_happens(document: Path, room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    # a machine under load would otherwise read a file in two windows, where the page shows one
    lengthen_windows(monkeypatch)
    fences = fences_in(document)
    for fence, following in zip(fences, (*fences[1:], None), strict=True):
        if fence.file_name is not None:
            room.keep(fence)
        elif fence.language == "console":
            assert room.type_in(fence) == fence.text, f"{document.name}:{fence.line}"
        elif _is_run(fence):
            printed = room.run(fence)
            told = following.text if following is not None and following.info == "text output" else ""
            assert printed == told, f"{document.name}:{fence.line}"


def test_what_a_document_quotes_stands_in_the_file() -> None:
    quoting = [fence for _, fence in ALL_FENCES if fence.excerpt_of is not None]
    strayed = [f"{f.document}:{f.line}" for f in quoting if f.text not in (ROOT / str(f.excerpt_of)).read_text("utf-8")]
    assert strayed == []


def test_every_fence_is_of_a_known_kind() -> None:
    assert [f"{f.document}:{f.line} {f.info!r}" for _, f in ALL_FENCES if not f.is_known] == []


@pytest.mark.parametrize("document", SHOWN, ids=lambda d: d.relative_to(ROOT).as_posix())
def test_a_program_asserts_or_prints_or_makes_what_a_later_one_uses(document: Path) -> None:
    programs = [f for f in fences_in(document) if f.language == "python" and not f.excerpt_of]
    later = "\n".join(f.text for f in fences_in(document) if f.language in ("python", "console"))
    for program in programs:
        if not re.search(r"\b(assert|print)\b", program.text):
            later = later.partition(program.text)[2]
            made = {n.name for n in ast.parse(program.text).body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
            made |= {(program.file_name or "").removesuffix(".py")} - {""}
            assert any(re.search(rf"\b{name}\b", later) for name in made), f"{program.document}:{program.line}"


def test_the_targets_that_documents_name_are_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {t for _, f in ALL_FENCES if f.info == "sh" for t in re.findall(r"^make ([a-z-]+)", f.text, re.MULTILINE)}
    assert named <= targets


def test_links_between_documents_lead_somewhere() -> None:
    lost = [
        f"{document.relative_to(ROOT)}: {target}"
        for document in documents()
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", _prose(document))
        if not (document.parent / target).exists()
    ]
    assert lost == []


def _prose(document: Path) -> str:
    """The document without what stands in code."""
    return re.sub(r"^```.*?^```$|`[^`\n]+`", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
