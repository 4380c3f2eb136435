"""What a ledger records of past windows, of the files that they read and of the pieces that they wrote."""

import gzip
from dataclasses import replace
from datetime import UTC, datetime

import fsspec
import pytest

from dagkit import Block, Config, Operator
from dagkit.compiler import compile_application
from dagkit.engine.files.staging import Part
from dagkit.engine.program.facts import Scaled, Split
from dagkit.engine.program.lower import program_of
from dagkit.engine.record.backlogs import backlog_millis, decisions, recorded
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.history import history
from dagkit.engine.record.state_verdicts import Fate, Verdict, verdicts
from dagkit.engine.record.written_file import place_of
from dagkit.errors import RunFailure
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.scaling import ScalingInputs, decide
from dagkit.simulation import Arrival, Simulation, following, world_of
from tests.engine.cast import Collect, Desk, Draw, Script, files_given, lines_through_filter
from tests.engine.items import item_of
from tests.engine.parts.cast import Tally, Total, chained
from tests.engine.recording import MIB, Recording, burst


def test_facts_come_back_as_they_were_kept():
    split = Split(into="reader.blocks", source="a.txt", start=0, at=4, end=None, block=1, why="the window was over")
    counts = {"before": 1, "after": 4, "policy": "drain", "rule": "as many as the backlog needs"}
    scaled = Scaled(operator="reader", at=datetime(2030, 1, 1, tzinfo=UTC), **counts, inputs={"blocks": 12})
    assert Checkpoint.model_validate(Checkpoint(facts=(split, scaled)).as_json()).facts == (split, scaled)


def test_every_window_is_reported_in_order(tmp_path):
    files_given(tmp_path, "one\ntwo\nthree\n" * 20)
    draw = lines_through_filter(tmp_path, block_size=60)
    done = launch(draw, until="once", path=tmp_path / "app", machine=Machine("reference"))
    told = list(history(Ledger.open(tmp_path / "app")))
    assert [entry.checkpoint.window for entry in told] == list(range(1, done.window_id + 1))
    assert [entry.committed for entry in told] == sorted(entry.committed for entry in told)


CONTENTS = [gzip.compress(text, mtime=0) for text in (b"one", b"two", b"three")]


@pytest.mark.parametrize("in_store", [False, True], ids=["on a disk", "in a store"])
def test_the_pieces_of_a_compressed_file_are_those_that_were_written(tmp_path, in_store):
    file = "memory://piece_places/a.gz" if in_store else str(tmp_path / "a.gz")
    with fsspec.open(file, "wb") as written:
        written.write(b"".join(CONTENTS))
    pieces = [
        Part(operator="w", file=file, part=f"staging/{window}/a/0/0.part", length=len(content), window=window)
        for window, content in enumerate(CONTENTS, 1)
    ]
    places = [place_of(piece, {file: pieces}, str(tmp_path / "app")) for piece in pieces]
    assert [place.content() for place in places if place is not None] == CONTENTS


def _ledger(recording: Recording) -> Ledger:
    return Ledger.open(recording.place / "app")


def test_every_decision_that_was_kept_can_be_made_again(tmp_path):
    made = decisions(_ledger(burst(tmp_path)))
    assert [(each.window, each.fact.before, each.fact.after) for each in made] == [(1, 1, 4), (3, 4, 1)]
    for each in made:
        again = decide(ScalingInputs.model_validate(each.fact.inputs))
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


def sent_to(source: str = "script", partitions: int = 1, **sinks: Operator) -> Draw:
    script = Script(looks=((1,), (2,)))
    return chained(*({source: script, name: sink} for name, sink in sinks.items()), **dict.fromkeys(sinks, partitions))


def verdicts_on(desk: Desk) -> list[Verdict]:
    return verdicts(program_of(compile_application(desk.draw, Config.of({}))), desk.ledger())


BEFORE = sent_to(sum=Total(), collect=Collect())


@pytest.mark.parametrize(
    ("after", "fates"),
    [
        (BEFORE, {}),
        (sent_to(sum=Total()), {"collect": Fate.DROPPED}),
        (sent_to(sum=Total(), collect=Collect(), count=Tally()), {"count": Fate.NEW}),
        (sent_to(sum=Tally(), collect=Collect()), {"sum": Fate.DROPPED}),
    ],
    ids=["the same", "an operator is gone", "an operator is new", "an operator declares other state"],
)
def test_state_is_carried_or_dropped(tmp_path, after, fates):
    Desk(tmp_path, BEFORE).run()
    desk = Desk(tmp_path, after)
    expected = dict.fromkeys(("script", "sum", "collect"), Fate.CARRIED) | fates
    assert [(each.operator, each.fate, each.code) for each in verdicts_on(desk)] == [
        (name, fate, None) for name, fate in sorted(expected.items())
    ]
    desk.run()


@pytest.mark.parametrize(
    ("before", "after", "operator"),
    [
        (BEFORE, sent_to(total=Total(), collect=Collect()), "total"),
        (BEFORE, sent_to(sum=Total(), collect=Collect(), source="numbers"), "numbers"),
        (sent_to(sum=Total(), partitions=2), sent_to(sum=Total()), "sum"),
    ],
    ids=["a renamed operator", "a renamed input operator", "state without a partition to take it"],
)
def test_what_a_launch_refuses_is_refused_with_its_code(tmp_path, before, after, operator):
    Desk(tmp_path, before).run()
    desk = Desk(tmp_path, after)
    first = verdicts_on(desk)[0]
    with pytest.raises(RunFailure) as refused:
        desk.run()
    assert (first.operator, first.fate, first.code) == (operator, Fate.REFUSED, refused.value.code)
    assert first.detail == refused.value.problem


def test_the_fields_of_groups_stand_among_the_others_in_a_checkpoint():
    assert " ".join(Checkpoint().model_dump(mode="json")) == (
        "format window launched began reported work queue search aside state held files finished receipts receipted "
        "read event_times watermarks drained ended facts rows partitions altered answered"
    )
