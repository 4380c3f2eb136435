"""Listeners receive what partitions did and what waits, and what they ask for is done and kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dagkit import (
    BatchedOperatorStats,
    Dag,
    OperatorContext,
    Partition,
    Partitioner,
    PartitioningContext,
    Response,
    StatelessPartitioner,
    StatsListener,
    Until,
)
from dagkit.conf.sources.sources import Sources, load
from dagkit.engine.program.facts import Scaled
from dagkit.engine.program.points import Point
from dagkit.engine.record.backlogs import decisions
from dagkit.engine.record.history import history
from dagkit.engine.record.run_events import Committed, RunEvent
from dagkit.engine.worker.protocol import Cores
from dagkit.errors import ApplicationFaults
from dagkit.scaling import ScalingInputs, decide
from dagkit.testing import FakeClock
from dagkit_operators import FileSplitterInput, Items, LineReader, MatchFiles, ReadFiles, RecordWriter, TailFiles
from tests.engine.cast import Around, Collect, Desk, Digits, Draw, Hurried, Ranges, arrived, files_given, some_lines
from tests.engine.parts.cast import Total, chained, facts_in
from tests.engine.work_cast import Names, Numbered, Twice

LOOKS = ((7, 3, 9), (20,), (1, 1, 8))
ALL = list(range(sum(map(sum, LOOKS))))


@dataclass
class Listener(StatsListener):
    """Records the statistics that it receives, and answers as the test says."""

    answers: Callable[[BatchedOperatorStats], Response] = lambda _: Response()
    told: list[BatchedOperatorStats] = field(default_factory=list)

    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        self.told.append(stats)
        return self.answers(stats)


def listened(*listeners: Any, of: str = "digits", partitioner: Partitioner | int = 2) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        chain = {"ranges": Ranges(looks=LOOKS), "digits": Digits(), "total": Total()}
        other = {"digits": chain["digits"], "collect": Collect()}
        chained(chain, other, digits=partitioner)(dag, conf)
        dag.set_operator_attribute(chain[of], OperatorContext.STATS_LISTENERS, list(listeners))

    return draw


def facts(desk: Desk) -> list[Scaled]:
    return facts_in(desk.ledger(), Scaled)


def test_before_the_first_window_listeners_receive_what_waits_and_nothing_else(tmp_path):
    listener = Listener()
    Desk(tmp_path, listened(listener), clock=FakeClock()).run()
    first, second = listener.told[:2]
    assert (first.operator, first.partition, first.partitions, first.current_window_id) == ("digits", 0, 2, 0)
    assert (second.partition, second.operator_id) != (first.partition, first.operator_id)
    assert (first.backlog.blocks, first.backlog.positions, first.backlog.pieces) == (3, 19, 3)
    assert [each.last_windowed_stats[-1].input_ports[0].queue_size for each in (first, second)] == [2, 1]
    assert (first.capacity.positions_per_second, first.at) == (None, FakeClock().now())


def test_after_a_window_they_receive_what_each_partition_did(tmp_path):
    listener = Listener()
    Desk(tmp_path, listened(listener)).run()
    told = [each for each in listener.told if each.current_window_id == 1]
    windows = [window for each in told for window in each.last_windowed_stats if window.window_id == 1]
    assert [each.partition for each in told] == [0, 1]
    assert sum(window.positions for window in windows) == sum(LOOKS[0])
    assert sum(window.output_ports[0].tuple_count for window in windows) == sum(LOOKS[0])
    assert sum(window.input_ports[0].tuple_count for window in windows) == len(LOOKS[0])
    assert all(each.capacity.positions_per_second for each in told)


def test_a_first_window_that_starts_workers_is_no_measure_of_what_windows_cost(tmp_path):
    listener, clock = Listener(), FakeClock()

    def probe(point: Point, window_id: int) -> None:
        if point is Point.STAGED:
            clock.advance(seconds=25 if window_id == 1 else 1)

    Desk(tmp_path, listened(listener), clock=clock, overlap=1).run(probe=probe)
    costs = [each.capacity.window_millis for each in listener.told if each.partition == 0]
    assert costs[0] == 0
    assert costs[1] > 20_000
    assert max(costs[2:]) <= 1000


def test_an_operator_without_a_queue_has_no_backlog(tmp_path):
    listener = Listener()
    Desk(tmp_path, listened(listener, of="total")).run()
    assert {each.backlog for each in listener.told} == {None}
    assert max(sum(port.tuple_count for port in w.input_ports) for t in listener.told for w in t.last_windowed_stats)


def test_what_a_listener_asks_for_is_done_before_the_next_window_and_kept_with_it(tmp_path):
    def answer(stats: BatchedOperatorStats) -> Response:
        if stats.partitions == 3 or stats.partition < stats.partitions - 1:
            return Response()
        seen = {"seen": stats.partitions}
        return Response(True, repartition_note="three", partitions=3, policy="thrice", inputs=seen)

    desk = Desk(tmp_path, listened(Listener(answer)))
    assert sorted(arrived(desk.run())) == ALL
    (fact,) = facts(desk)
    assert (fact.operator, fact.before, fact.after) == ("digits", 2, 3)
    assert (fact.rule, fact.policy, fact.inputs) == ("three", "thrice", {"seen": 2})
    assert len(next(iter(history(desk.ledger()))).checkpoint.facts) == 1


def test_a_look_that_changes_nothing_is_kept_where_it_reports_its_inputs(tmp_path):
    desk = Desk(tmp_path, listened(Listener(lambda _: Response(repartition_note="fits", inputs={"looked": 1}))))
    desk.run(windows=1)
    assert [(f.before, f.after, f.rule, f.policy) for f in facts(desk)] == [(2, 2, "fits", "Listener")] * 2


def test_loads_go_to_a_partitioner_that_decides_by_itself(tmp_path):
    def answer(stats: BatchedOperatorStats) -> Response:
        return Response(stats.partitions == 2, load_indicator=1 if stats.partition == 0 else 0)

    desk = Desk(tmp_path, listened(Listener(answer)))
    desk.run()
    assert [(f.before, f.after) for f in facts(desk)] == [(2, 3)]
    kept = desk.loop().checkpoint.partitions["digits"]
    assert [keys["blocks"].keys for keys in kept.keys] == [(0,), (2,), (1,)]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda _: 1 / 0, "the listener Listener of digits raised, and is not called again"),
        (lambda _: 3, "process_stats of Listener gave int, not Response"),
    ],
    ids=["raises", "answers nonsense"],
)
def test_a_broken_listener_is_named_and_heard_no_more_and_the_run_goes_on(tmp_path, caplog, answer, told):
    broken, sound = Listener(answer), Listener()
    loop = Desk(tmp_path, listened(broken, sound)).run()
    assert len(broken.told) == 1
    assert len(sound.told) > 2
    assert told in caplog.text
    assert sorted(arrived(loop)) == ALL


def test_what_was_refused_is_not_asked_for_again(tmp_path, caplog):
    class Stubborn(Partitioner):
        def define_partitions(
            self, partitions: Sequence[Partition], context: PartitioningContext
        ) -> Sequence[Partition]:
            return partitions

    listener = Listener(lambda stats: Response(True, partitions=stats.partitions + 1))
    desk = Desk(tmp_path, listened(listener, partitioner=Stubborn()))
    desk.run()
    assert caplog.text.count("digits is to have") == 1
    assert facts(desk) == []


def test_a_property_file_names_who_listens_and_who_partitions(tmp_path):
    """Any item in a second is too much for one, so there is one more partition for each that works."""
    by_rate = "StatelessThroughputBasedPartitioner:2:maximumEvents=0.001:cooldownMillis=0"
    conf = {"dt.operator.digits.attr.PARTITIONER": by_rate, "dt.operator.digits.attr.STATS_LISTENERS": by_rate}
    draw = chained({"ranges": Ranges(looks=LOOKS), "digits": Digits(), "collect": Collect()})
    desk = Desk(tmp_path, draw, conf=conf)
    loop = desk.run(windows=2)
    assert [(f.before, f.after, f.policy) for f in facts(desk)][:1] == [(2, 4, "StatelessThroughputBasedPartitioner")]
    assert len(loop.run_state.program.operators["digits"]) == 4


def test_a_partitioner_receives_the_partitions_by_the_ids_that_listeners_know(tmp_path):
    class Told(StatelessPartitioner):
        def partitioned(self, partitions: Mapping[int, Partition]) -> None:
            heard.append(partitions)

    heard: list[Mapping[int, Partition]] = []
    listener = Listener(lambda stats: Response(stats.partitions == 2, partitions=3))
    Desk(tmp_path, listened(listener, partitioner=Told(2))).run()
    (partitions,) = heard
    assert set(partitions) == {each.operator_id for each in listener.told if each.partitions == 3}
    assert len({tuple(sorted(each.keys["blocks"].keys)) for each in partitions.values()}) == 3


@dataclass
class Roomy(Around):
    """The reference, which says that it has more cores than it has."""

    count: int = 4

    def cores(self) -> Cores:
        return Cores(self.count, self.count)


def lines(home: Path, **reader: Any) -> Draw:
    splitter = FileSplitterInput(scanner={"files": [str(home / "in")]}, block_size=200)
    writer = RecordWriter(file_path=str(home / "out"))
    return chained({"splitter": splitter, "reader": LineReader(**reader), "writer": writer})


@pytest.fixture
def one_file(tmp_path):
    """Makes a desk with one file, and a reader of these properties on four cores."""
    files_given(tmp_path, some_lines(300))

    def desk(reader: Mapping[str, Any], **given: Any) -> Desk:
        return Desk(tmp_path, lines(tmp_path, **reader), backend=lambda b: Hurried(Roomy(b)), **given)

    return desk


@pytest.mark.parametrize(
    ("reader", "counts"),
    [
        pytest.param({}, [4], id="as many as there are cores, from the first window on"),
        pytest.param({"max_readers": 2}, [2], id="not more than it may have"),
        pytest.param({"collect_stats": False}, [1], id="not where it is not to follow"),
    ],
)
def test_a_reader_with_default_settings_uses_all_cores_on_one_file(one_file, reader, counts):
    desk, seen = one_file(reader), []

    def observe(_: Any) -> None:
        if loop.run_state.in_flight:
            seen.append(len(loop.run_state.program.operators["reader"]))

    loop = desk.loop(observers=[observe])
    loop.run()
    assert list(dict.fromkeys(seen)) == counts
    written = sorted(line for content in desk.outputs().values() for line in content.decode().splitlines())
    assert written == sorted(some_lines(300).splitlines())


@pytest.mark.parametrize(
    ("reader", "grown_to", "seconds"),
    [
        pytest.param({"cool_down_millis": 20_000}, 4, 20, id="by drain, after the cool-down"),
        pytest.param({"policy": "apex"}, 16, 120, id="by apex, at the next look: V15"),
        pytest.param({"policy": "apex", "interval_millis": 7000, "max_readers": 5}, 5, 7, id="by apex, as it is set"),
        pytest.param({"policy": "apex", "apex_compat": True}, 16, 120, id="as Malhar does"),
    ],
)
def test_readers_that_have_nothing_to_do_go_away_once_nothing_came_for_a_while(one_file, reader, grown_to, seconds):
    desk, counts = one_file(reader, clock=FakeClock(), until=Until.STOPPED), []

    def observe(happening: RunEvent) -> None:
        if isinstance(happening, Committed):
            counts.append(len(loop.run_state.program.operators["reader"]))
            if counts[-1] == 1:
                loop.stop()

    loop = desk.loop(observers=[observe])
    loop.run()
    assert list(dict.fromkeys(counts)) == [grown_to, 1]
    changes = [f for f in facts(desk) if f.before != f.after]
    assert [(f.before, f.after) for f in changes] == [(1, grown_to), (grown_to, 1)]
    assert seconds <= (changes[1].at - changes[0].at).total_seconds() <= seconds + 2
    assert len(facts(desk)) <= 5
    for fact in facts(desk):
        decision = decide(ScalingInputs.model_validate(fact.inputs))
        assert (decision.after, decision.rule) == (fact.after, fact.rule)


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
    files_given(home, some_lines(300))
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
    assert all(decide(ScalingInputs.model_validate(fact.inputs)).after == fact.after for fact in made)


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
