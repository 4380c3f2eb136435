"""What README and docs show is true: every program runs, and prints what the page says it prints."""

import pytest

from tests.docs.fences import ROOT, documents, fences_in
from tests.docs.running import SERVICES, lengthen_windows

SHOWN = [document for document in documents() if document.name != "errors.md" and fences_in(document)]


def _case(document):
    """The document, marked by the services whose addresses it shows."""
    text = document.read_text(encoding="utf-8")
    marks = [pytest.mark.service(name) for address, (name, _) in SERVICES.items() if address in text]
    return pytest.param(document, marks=marks, id=document.relative_to(ROOT).as_posix())


@pytest.mark.parametrize("document", [_case(document) for document in SHOWN])
def test_a_document_shows_what_happens(document, room, monkeypatch):
    # a machine under load would otherwise read a file in two windows, where the page shows one
    lengthen_windows(monkeypatch)
    fences = fences_in(document)
    for fence, following in zip(fences, (*fences[1:], None), strict=True):
        if fence.file_name is not None:
            room.keep(fence)
        elif fence.language == "console":
            assert room.type_in(fence) == fence.text, f"{document.name}:{fence.line}"
        elif fence.language == "python" and fence.role == "":
            printed = room.run(fence)
            told = following.text if following is not None and following.info == "text output" else ""
            assert printed == told, f"{document.name}:{fence.line}"
