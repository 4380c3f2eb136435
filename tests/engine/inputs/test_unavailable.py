"""A source that does not answer is asked again until it does; a look that it interrupted leaves nothing behind."""

import logging

import pytest

from dagkit import InputOperator, OutputPort, Shutdown, State
from dagkit.api.external import Unavailable
from dagkit.api.running import Until
from dagkit.engine.program.points import Point
from dagkit.testing import CrashAfter, FakeClock
from tests.engine.cast import Collect, Desk, arrived

AWAY = iter(())


class Pages(InputOperator):
    """Sends pages of two numbers; the server is away in the middle of some requests."""

    kind = "unavailable.pages/1"
    out = OutputPort(int)
    page = State(0)

    def emit_tuples(self):
        if self.page == 3:
            raise Shutdown
        self.page += 1
        self.out.emit(2 * self.page)
        if next(AWAY, False):
            raise Unavailable("the server answers 503")
        self.out.emit(2 * self.page + 1)


@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE, Until.STOPPED])
@pytest.mark.parametrize("crash", [None, CrashAfter(Point.APPENDED, 1)])
def test_every_page_is_sent_once_whenever_the_server_is_away(tmp_path, monkeypatch, caplog, until, crash):
    monkeypatch.setattr(f"{__name__}.AWAY", iter([True, True, False, True, False, False, True]))

    def graph(dag, conf):
        dag.add_operator("pages", Pages()) >> dag.add_operator("collect", Collect())

    desk = Desk(tmp_path, graph, until=until, clock=FakeClock())
    with caplog.at_level(logging.WARNING):
        desk.crash(*([crash] if crash else []))
        loop = desk.run()
    while until is Until.ONCE and len(arrived(loop)) < 6:
        loop = desk.run()
    assert arrived(loop) == [2, 3, 4, 5, 6, 7]
    assert "pages does not answer, and is tried again until it does: the server answers 503" in caplog.text
    assert desk.faults() == []
