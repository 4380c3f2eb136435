"""Observers learn what each look found."""

from typing import Any

from dagkit import Dag
from dagkit.engine.reports.run_events import Found, RunEvent
from tests.engine.cast import Desk, Digits, Ranges


def test_each_look_reports_the_work_that_it_found(tmp_path):
    def draw(dag: Dag, _: Any) -> None:
        ranges = dag.add_operator("ranges", Ranges(looks=((5,), (1, 2, 3), (4, 4))))
        dag.add_stream("blocks", ranges.blocks, dag.add_operator("digits", Digits()).blocks)

    found: list[RunEvent] = []
    loop = Desk(tmp_path, draw).run(observers=[found.append])
    assert [event for event in found if isinstance(event, Found)] == [
        Found("ranges", 1, 5, 0, {"byte": 5}),
        Found("ranges", 3, 6, 0, {"byte": 6}),
        Found("ranges", 2, 8, 0, {"byte": 8}),
    ]
    assert loop.run_state.driver_inputs._work == {}
