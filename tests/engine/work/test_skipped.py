"""Offsets that an operator claims and does not read are skipped in the ledger, not read."""

import pytest

from dagkit import Config
from dagkit.compiler import compile_application
from dagkit.engine.record.work_history import listed_work
from dagkit.ledger.audit.verify import verify
from tests.backends.slots import InSlots
from tests.engine.cast import Collect, Desk, Digits, Ranges, arrived


class Gaps(Digits):
    """Reads digits; those from 3 to 6 and 8 are not there any more."""

    kind = "skipped.gaps/1"

    def process(self, element, tracker):
        for number in super().process(element, tracker):
            if number in (3, 4, 5, 6, 8):
                tracker.skip(number, number + 1)
            else:
                yield number


@pytest.mark.parametrize("looks", [((10,),), ((5, 5),), ((4,), (6,))])
@pytest.mark.parametrize("backend", ["reference", "slots"])
def test_skipped_offsets_are_listed_and_not_counted_as_read(tmp_path, backend, looks):
    def graph(dag, conf):
        gaps, collect = dag.add_operator("gaps", Gaps()), dag.add_operator("collect", Collect())
        dag.add_operator("ranges", Ranges(looks=looks)) >> gaps >> collect

    slots = InSlots(compile_application(graph, Config.of({})))
    desk = Desk(tmp_path, graph, backend=lambda inner: inner if backend == "reference" else slots)
    assert sorted(arrived(desk.run())) == [0, 1, 2, 7, 9]
    verdict = verify(desk.ledger())
    assert verdict.is_complete
    assert [(proven.positions, [str(span) for span in proven.skipped]) for proven in verdict.proven] == [
        (5, ["numbers[3, 7)", "numbers[8, 9)"])
    ]
    skipped = [work for work in listed_work(desk.ledger()) if work.state == "skipped"]
    assert sum(work.place.end - work.place.start for work in skipped) == 5
