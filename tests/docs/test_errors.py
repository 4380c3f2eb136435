"""The first part of `docs/errors.md`: its faults cause exactly their code, and its repairs nothing."""

import pytest

from dagkit import Config, StreamingApplication
from dagkit.compiler import compile_application
from dagkit.conf.sources.sources import Sources, load
from dagkit.errors import CODES, ApplicationFaults
from tests.docs.fences import ROOT, fences_in
from tests.docs.running import defined_last

PAGE = ROOT / "docs/errors.md"
FENCES = fences_in(PAGE)


@pytest.mark.parametrize("code", CODES)
def test_the_fault_causes_its_code_alone_where_it_was_written(code, room):
    told, shown = _told(room, _fault(code)), {fence for fence in _fault(code) if fence.role == "fault"}
    assert {diagnostic.code for diagnostic in told} == {code}, "\n".join(map(str, told))
    for where in (diagnostic.where for diagnostic in told):
        files = {_written_to(fence) for fence in shown if fence.language != "python"}
        assert where.file in {f.document for f in shown if f.holds(where.line)} | files


@pytest.mark.parametrize("code", CODES)
def test_the_repair_causes_nothing(code, room):
    assert _told(room, _repair(code)) == ()


def _under(code):
    return [fence for fence in FENCES if fence.heading == code]


def _fault(code):
    return [fence for fence in _under(code) if fence.role != "repair"]


def _repair(code):
    """What the heading shows, with each repair in the place of the faults of its language."""
    replaced = {fence.language for fence in _under(code) if fence.role == "repair"}
    return [f for f in _under(code) if f.role != "fault" or f.language not in replaced]


def _written_to(fence):
    return fence.file_name or f"conf.{fence.language}"


def _told(room, fences):
    """Every diagnostic of the last application that the page defines so far, under the property files shown with it."""
    application = None
    for program in [f for f in FENCES if f.role == "shared"] + [f for f in fences if f.language == "python"]:
        before = dict(vars(room.module))
        room.run(program)
        for value in defined_last(room.module, before):
            is_class = isinstance(value, type) and value is not StreamingApplication
            if is_class and issubclass(value, StreamingApplication):
                application = value()
            elif getattr(value, "__name__", "") == "populate_dag":
                application = value
    files = [f for f in fences if f.language != "python"]
    for file in files:
        (room.directory / _written_to(file)).write_text(file.text, encoding="utf-8")
    conf, faults = load(Sources(files=[_written_to(file) for file in files])) if files else (Config(), [])
    try:
        return compile_application(application, conf, conf_faults=faults).notes
    except ApplicationFaults as raised:
        return raised.diagnostics
