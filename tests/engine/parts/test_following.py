"""Any splittable operator follows its backlog by settings alone: files that are read, and an author's own elements."""

from functools import partial
from pathlib import Path

import pytest

from dagkit import Until
from dagkit.conf.sources.sources import Sources, load
from dagkit.engine.record.backlogs import decisions
from dagkit.engine.record.run_events import Committed, RunEvent
from dagkit.errors import ApplicationFaults
from dagkit.scaling import ScalingInputs, decide
from dagkit.testing import FakeClock
from dagkit_operators import Items, MatchFiles, ReadFiles, TailFiles
from tests.engine.cast import Collect, Desk, Draw, Hurried, arrived, some_lines
from tests.engine.parts.cast import chained
from tests.engine.parts.test_listeners import Roomy, lines
from tests.engine.work_cast import Names, Numbered, Twice


def reading(kind: type[ReadFiles[str]], home: Path) -> Draw:
    patterns, follows = Items[str](items=(str(home / "in" / "*.txt"),)), kind(part_size=200)
    return chained({"patterns": patterns, "match": MatchFiles(), "follows": follows, "collect": Collect()})


def numbering(home: Path, *, behind_another: bool = False) -> Draw:
    """Four names on the driver; or two, of which a worker makes four, each put off once after its first number."""
    end = {"follows": Numbered(defers_at=(1,) if behind_another else ()), "collect": Collect()}
    if behind_another:
        return chained({"names": Names(looks=((("n", 90), ("m", 30)),)), "twice": Twice(), **end})
    return chained({"names": Names(looks=((("n", 90), ("m", 30), ("o", 90), ("p", 30)),)), **end})


def desk(home: Path, draw: Draw, *settings: str, until: Until = Until.STOPPED) -> Desk:
    """An application with four cores, and a property file with these settings of operators."""
    (home / "in").mkdir(exist_ok=True)
    (home / "in" / "one.txt").write_text(some_lines(300))
    site = home / "site.properties"
    site.write_text("".join(f"dt.operator.{setting}\n" for setting in settings))
    conf, faults = load(Sources(files=(site,)))
    assert faults == []
    return Desk(home, draw, backend=lambda b: Hurried(Roomy(b)), clock=FakeClock(), until=until, conf=conf)


APEX = "BacklogPartitioner:apex:maxPartitions=4:intervalMillis=0"
TWO = "BacklogPartitioner:apex:minPartitions=2:maxPartitions=2"
DRAIN = "BacklogPartitioner:drain:maxPartitions=3:policySettings=cool_down_millis=4000"


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("drawn", "items", "settings", "grown_to"),
    [
        pytest.param(partial(reading, ReadFiles), 300, APEX, 4, id="ReadFiles"),
        pytest.param(partial(reading, TailFiles), 300, APEX, 4, id="TailFiles"),
        pytest.param(partial(numbering, behind_another=True), 240, APEX, 4, id="an operator behind another one"),
        pytest.param(numbering, 240, "BacklogPartitioner", 4, id="an author's own operator, by default"),
        pytest.param(numbering, 240, DRAIN, 3, id="an author's own operator, as it is set"),
    ],
)
def test_it_scales_up_and_down_by_a_line_of_a_property_file(tmp_path, drawn, items, settings, grown_to):
    here = desk(tmp_path, drawn(tmp_path), f"follows.attr.PARTITIONER = {settings}")
    counts: list[int] = []

    def observe(happening: RunEvent) -> None:
        if isinstance(happening, Committed):
            counts.append(len(loop.run_state.program.operators["follows"]))
            if counts[-1] == 1 and grown_to in counts:
                loop.stop()

    loop = here.loop(observers=[observe])
    loop.run()
    assert (max(counts), counts[-1]) == (grown_to, 1)
    here.until = Until.IDLE  # a loop that is stopped may leave work to the next one
    assert len(arrived(here.run())) == items
    made = [each.fact for each in decisions(here.ledger(), "follows")]
    assert {fact.policy for fact in made} == {"apex" if settings is APEX else "drain"}
    assert all(decide(ScalingInputs.of(fact.inputs)).after == fact.after for fact in made)


def test_without_a_setting_the_number_stays_fixed(tmp_path):
    here = desk(tmp_path, numbering(tmp_path), until=Until.ONCE)
    assert len(here.run().run_state.program.operators["follows"]) == 1
    assert decisions(here.ledger()) == []


def test_a_block_reader_follows_its_partitioner_and_not_its_own_properties(tmp_path):
    """The properties allow four, and the partitioner two."""
    setting = "reader.attr.PARTITIONER = BacklogPartitioner::maxPartitions=2"
    here = desk(tmp_path, lines(tmp_path, max_readers=4), setting, until=Until.ONCE)
    here.run()
    first, *others = decisions(here.ledger())
    assert (first.fact.before, first.fact.after) == (1, 2)
    assert {each.fact.after for each in others} <= {2}


def test_a_partitioner_that_statistics_listeners_name_as_well_listens_once(tmp_path):
    both = [f"follows.attr.{name} = {TWO}" for name in ("PARTITIONER", "STATS_LISTENERS")]
    here = desk(tmp_path, numbering(tmp_path), *both, until=Until.ONCE)
    here.run(windows=1)
    (look,) = decisions(here.ledger())
    assert (look.fact.before, look.fact.after) == (2, 2)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("twice.attr.PARTITIONER = BacklogPartitioner", "Twice has no backlog: only a SplittableOperator has one"),
        (
            "follows.attr.PARTITIONER = BacklogPartitioner::minPartitions=3:maxPartitions=2",
            "min_partitions 3 is greater than max_partitions 2",
        ),
    ],
    ids=["an operator without a backlog", "bounds that cross"],
)
def test_what_cannot_follow_a_backlog_is_refused(tmp_path, setting, told):
    with pytest.raises(ApplicationFaults, match=told):
        desk(tmp_path, numbering(tmp_path, behind_another=True), setting).loop()
