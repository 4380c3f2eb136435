"""Two windows in flight: what the older one leaves is kept apart from what only the younger one was given."""

import pytest

from dagkit.compiler import compile_application
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.next_checkpoint import next_checkpoint
from dagkit.engine.checkpoint.outcome import ChangesInForce, ConsumedWork, InputStatus, RemainingWork, WindowOutcome
from dagkit.engine.program.lower import program_of
from dagkit.engine.worker.protocol import Answer, Report
from tests.engine.cast import Collect, Digits, Ranges, chain
from tests.engine.items import waiting

PROGRAM = program_of(compile_application(chain(ranges=Ranges(), digits=Digits(), collect=Collect())))
(TARGET,) = (each.address for each in PROGRAM.targets.values() if each.address == "digits.blocks")


@pytest.mark.parametrize("younger", [[(10, 20)], [(10, 14), (14, 20)]], ids=["whole", "in pieces"])
def test_what_the_older_window_left_of_a_block_waits_though_a_younger_one_has_its_number(younger):
    older, left, given = (waiting(0, *bounds, into=TARGET) for bounds in ((0, 10), (3, 10), (10, 20)))
    outcome = WindowOutcome(
        PROGRAM,
        window_id=1,
        consumed=ConsumedWork([older], {TARGET: [[older]]}),
        answer=Answer((Report(0, 0, left=(left,)),)),
        state={},
    )
    allocated = [waiting(0, *bounds, into=TARGET) for bounds in younger]
    remaining = RemainingWork(younger=[ConsumedWork([given], {TARGET: [allocated]})])
    checkpoint = next_checkpoint(Checkpoint(), outcome, remaining, InputStatus(), ChangesInForce())
    assert [(each.start, each.end) for each in checkpoint.queue] == [(3, 10)]
