"""What a ledger records of backlogs, and what other settings would have done with them."""

from dataclasses import replace

import pytest

from dagkit import Block
from dagkit.engine.program.facts import Scaled
from dagkit.engine.record.backlogs import backlog_millis, decisions, recorded
from dagkit.errors import RunFailure
from dagkit.ledger import Ledger
from dagkit.scaling import ScalingInputs, decide
from dagkit.simulation import Arrival, Simulation, following, world_of
from tests.engine.items import item_of
from tests.engine.recording import MIB, Recording, burst


def _ledger(recording: Recording) -> Ledger:
    return Ledger.open(recording.place / "app")


def test_every_decision_that_was_kept_can_be_made_again(tmp_path):
    made = decisions(_ledger(burst(tmp_path)))
    assert [(each.window, each.fact.before, each.fact.after) for each in made] == [(1, 1, 4), (3, 4, 1)]
    for each in made:
        again = decide(ScalingInputs.of(each.fact.inputs))
        assert (again.after, again.rule) == (each.fact.after, each.fact.rule)


def test_when_blocks_came_when_all_were_read_and_how_fast_it_was(tmp_path):
    backlog = recorded(_ledger(burst(tmp_path)))
    assert backlog.arrivals == (Arrival(0.0, 100, MIB), Arrival(90_000.0, 1, MIB))
    assert backlog.drained == (10_000.0, 90_500.0)
    assert backlog_millis(backlog.arrivals, backlog.drained) == 10_500.0
    world = world_of(backlog)
    assert world.cores == [(0.0, 4)]
    assert world.per_milli == pytest.approx(2.5 * MIB / 1000)


def test_a_simulation_of_what_was_takes_about_as_long_as_it_did(tmp_path):
    backlog = recorded(_ledger(burst(tmp_path)))
    course = Simulation(world_of(backlog), following(backlog.inputs[-1].settings)).run()
    assert backlog_millis(backlog.arrivals, course.drained) == pytest.approx(10_500, rel=0.1)
    slower = Simulation(world_of(backlog), lambda *_: (1, "")).run()
    assert 19_000 < backlog_millis(backlog.arrivals, slower.drained) < 22_000  # by one slot of each of two windows
    alone = Simulation(replace(world_of(backlog), overlap=1), lambda *_: (1, "")).run()
    assert backlog_millis(backlog.arrivals, alone.drained) > 38_000


def test_what_waits_for_another_reader_is_not_this_ones(tmp_path):
    recording = Recording(tmp_path)
    recording.find(2)
    foreign = Block(7, "b.txt", 0, 9 * MIB)
    recording.add([foreign])
    others = item_of("other.blocks_metadata_input", foreign, "b.txt")
    recording.run(2 * MIB, 1, [recording.decide()], queue=[others])
    backlog = recorded(_ledger(recording))
    assert backlog.arrivals == (Arrival(0.0, 2, MIB),)
    assert backlog.drained == (1000.0,)


def test_before_anything_was_measured_what_was_read_shows_how_fast(tmp_path):
    recording = Recording(tmp_path)
    recording.find(100)
    recording.run(100 * MIB, 10, [recording.decide()])
    assert world_of(recorded(_ledger(recording))).per_milli == pytest.approx(2.5 * MIB / 1000)


def test_a_run_that_decided_nothing_is_reported(tmp_path):
    recording = Recording(tmp_path)
    recording.find(1)
    recording.run(MIB, 1, [])
    with pytest.raises(RunFailure, match="no operator of this application has looked"):
        recorded(_ledger(recording))


def test_an_operator_that_decided_nothing_is_reported_with_the_one_that_did(tmp_path):
    with pytest.raises(RunFailure, match="did you mean 'reader'"):
        recorded(_ledger(burst(tmp_path)), "raeder")


def test_a_backlog_that_was_never_read_is_reported(tmp_path):
    recording = Recording(tmp_path)
    recording.find(100)
    recording.run(0, 1, [recording.decide()])
    with pytest.raises(RunFailure, match="nothing of what reader was given has been read yet"):
        world_of(recorded(_ledger(recording)))


def test_decisions_of_others_have_no_inputs_to_be_made_again_from(tmp_path):
    recording = Recording(tmp_path)
    recording.find(1)
    by_hand = {"before": 1, "after": 3, "policy": "asked", "rule": "set by hand"}
    recording.run(MIB, 1, [Scaled(operator="reader", at=recording.clock.now(), **by_hand)])
    (made,) = decisions(_ledger(recording))
    assert made.inputs is None
    with pytest.raises(RunFailure, match="no decision for reader kept the inputs"):
        recorded(_ledger(recording))
