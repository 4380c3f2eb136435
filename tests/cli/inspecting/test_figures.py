"""`dagkit scale`: why there are so many partitions, and how many there would have been."""

import pytest

from dagkit import Until
from dagkit.engine.program.facts import Scaled, Split
from dagkit.engine.record.history import history
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.scaling import Drain, ScalingSettings
from dagkit_operators import Filter
from tests.engine.cast import Desk, Hurried, numbers_collected, some_lines
from tests.engine.parts.test_listeners import Roomy, lines
from tests.engine.record.test_row_account import Doubling, draw
from tests.engine.recording import MIB, Recording, burst
from tests.engine.restriction_cast import CountFn, ShardReader, TableReader
from tests.engine.work_cast import numbers_of_names
from tests.old_files import aged, old_file
from tests.scaling.steady import install


@pytest.fixture
def place(tmp_path):
    burst(tmp_path)
    return str(tmp_path / "app")


def test_explain_shows_every_decision_and_in_json_its_inputs_and_what_it_would_be_now(dagkit, place):
    first, second = dagkit("scale", "explain", place).out.splitlines()
    reason = "as many as can work at once, because no speed is measured yet"
    assert first == (
        "2024-01-01T00:00:00.000+00:00 reader, by drain: 100 blocks wait, 105M positions; 4 cores; "
        f"1 becomes 4: {reason}"
    )
    assert second.startswith("2024-01-01T00:01:30.000+00:00 reader, by drain: 1 block waits")
    assert second.endswith("0.4 s with 1 and 0.4 s with 4; 4 become 1: as many as can work at once")
    document = dagkit("scale", "explain", place, "--json").document
    told = document["decisions"]
    assert [(d["window"], d["before"], d["after"], d["decided_again"]) for d in told] == [(1, 1, 4, 4), (3, 4, 1, 1)]
    assert (document["schema"], told[0]["inputs"]["backlog"]["blocks"]) == ("dagkit.scaling/1", 100)


def test_its_help_lists_its_own_commands_in_one(dagkit):
    told = dagkit("scale", "--help").out
    assert "Commands:" in told
    assert "Compile an application" not in told


@pytest.mark.parametrize("name", ["max_readers", "maxReaders"])
def test_simulate_sets_what_was_beside_what_would_have_been(dagkit, place, name):
    """The setting may be spelled as in a property file."""
    document = dagkit("scale", "simulate", place, "--set", f"{name}=1", "--json").document
    was, again, other = document["courses"]
    assert (document["operator"], document["settings"]["max_partitions"]) == ("reader", 1)
    assert (was["what"], was["backlog_millis"], was["most"], was["changes"]) == ("recorded", 10_500, 4, 2)
    assert again["backlog_millis"] == pytest.approx(10_500, rel=0.1)
    assert 19_000 < other["backlog_millis"] < 22_000  # by one slot of each of two windows
    assert (other["most"], other["changes"]) == (1, 0)
    headline, header, *rows = dagkit("scale", "simulate", place).out.splitlines()
    assert (headline, header.split("  ")[-1]) == ("reader: 101 blocks came", "time of slots")
    assert [row.split("  ")[0] for row in rows] == ["recorded", "simulated, as it was"]


def test_what_a_run_decided_is_explained_and_can_be_tried_otherwise(dagkit, tmp_path):
    old_file(tmp_path / "in" / "one.txt", some_lines(300))
    Desk(tmp_path, lines(tmp_path), backend=lambda backend: Hurried(Roomy(backend))).run()
    path = str(tmp_path / "app")
    told = dagkit("scale", "explain", path, "--json").document["decisions"]
    assert [(d["before"], d["after"]) for d in told if d["before"] != d["after"]] == [(1, 4)]
    assert all(d["decided_again"] == d["after"] for d in told)
    was, again, other = dagkit("scale", "simulate", path, "--set", "max_readers=2", "--json").document["courses"]
    assert (was["most"], again["most"], other["most"]) == (4, 4, 2)
    assert was["backlog_millis"] > 0


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("max_reader=3", "'max_reader' is not one of policy, min_partitions"),
        ("max_readers", "the form NAME=VALUE"),
        ("max_readers=many", "max_partitions: Input should be a valid integer"),
        ("min_readers=9", "min_partitions 9 is greater than max_partitions 2"),
    ],
)
def test_what_cannot_be_set_is_reported_and_a_bound_can_be_taken_away(dagkit, tmp_path, setting, told):
    burst(tmp_path, ScalingSettings(max_partitions=2))
    simulate = ("scale", "simulate", str(tmp_path / "app"), "--set")
    answer = dagkit(*simulate, setting)
    assert (answer.code, told in " ".join(answer.err.replace("│", "").split())) == (2, True)
    assert dagkit(*simulate, "max_readers=none", "--json").document["courses"][2]["most"] == 4


def test_where_nothing_was_decided_there_is_nothing_to_simulate(dagkit, tmp_path, place):
    unknown = "no decision was recorded for 'raeder' [decision-missing]\n  help: did you mean 'reader'?\n"
    for verb in ("explain", "simulate"):
        assert dagkit("scale", verb, str(tmp_path)).code == 6
        dagkit("scale", verb, place, "--operator", "raeder").fails(6, unknown)
    recording = Recording(tmp_path / "other")
    recording.find(1)
    recording.run(MIB, 1, [])
    missing = "no operator of this application has looked at its backlog yet [decision-missing]\n"
    dagkit("scale", "simulate", str(tmp_path / "other" / "app")).fails(6, missing)
    recording.run(MIB, 1, [recording.decide()])
    assert "1 stays" in dagkit("scale", "explain", str(tmp_path / "other" / "app"), "--operator", "reader").out
    assert dagkit("scale", "explain", str(tmp_path / "other" / "app"), "--changes").out == "nothing was decided\n"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["steadily", "tests.scaling.steady:Steady", "tests.scaling.steady.Steady"])
def test_a_policy_from_elsewhere_is_launched_explained_and_simulated(dagkit, tmp_path, monkeypatch, way):
    install(tmp_path / "site", monkeypatch)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.txt").write_text(some_lines(300))
    aged(tmp_path / "in" / "one.txt")
    conf = {"dt.operator.reader.prop.policy": way, "dt.operator.reader.prop.policySettings.goal": "3"}
    app = tmp_path / "app"
    launch(lines(tmp_path), conf, until=Until.ONCE, path=app, machine=Machine("reference"), durable=False)

    facts = [f for e in history(Ledger.open(str(app))) for f in e.checkpoint.facts if isinstance(f, Scaled)]
    assert next((f.before, f.after, f.policy, f.rule) for f in facts) == (1, 3, "steady", "the goal")
    explained = dagkit("scale", "explain", str(app)).out.splitlines()[0]
    assert "reader, by steady: " in explained
    assert explained.endswith("look 0; 1 becomes 3: the goal")

    simulated = dagkit("scale", "simulate", str(app), "--set", "goal=5", "--json").document
    assert simulated["settings"]["policy_settings"] == {"goal": 5}
    assert [course["most"] for course in simulated["courses"]] == [3, 3, 5]
    other = dagkit("scale", "simulate", str(app), "--set", "policy=drain", "--json").document
    assert other["settings"]["policy_settings"] == Drain().model_dump()


@pytest.fixture
def unbalanced(tmp_path):
    desk = Desk(tmp_path, draw(("Odd", Filter[int](lambda number: number % 2 == 1))))
    desk.run(windows=2)
    return desk.place


def test_items_for_people_and_as_a_document(dagkit, unbalanced):
    header, *rows = (line.split() for line in dagkit("items", unbalanced).out.splitlines())
    assert header == ["window", "operator", "received", "sent", "rejected", "dropped", "adds", "up"]
    assert rows[0] == ["1", "Numbers", "3", "2", "1", "0", "yes"]
    assert ["1", "Sink", "1", "0", "0", "-", "-"] in rows
    odd = dagkit("items", unbalanced, "--operator", "Odd").out.splitlines()[2]
    assert odd.split() == ["2", "Odd", "1", "0", "0", "1", "yes"]
    dagkit("items", unbalanced, "--operator", "Even").fails(6, "there is no operator 'Even'")
    document = dagkit("items", unbalanced, "--json").document
    first, second = document["windows"]
    counts = {"received": 2, "passed_on": 1, "rejected": 0, "dropped": 1, "left_out": {}, "adds_up": True}
    assert first["operators"]["Odd"] == {"taken": {"input": 2}, "sent": {"output": 1}, "rule": "filtered", **counts}
    assert first["streams"]["Numbers.output > Odd.input"] == {"sent": 2, "taken": 2, "copies": 1, "adds_up": True}
    assert (document["schema"], second["window"], second["breaches"]) == ("dagkit.items/1", 2, [])


def test_it_fails_if_a_window_does_not_add_up(dagkit, tmp_path):
    desk = Desk(tmp_path, draw(("Broken", Doubling())))
    desk.run(windows=1)
    answer = dagkit("items", desk.place)
    assert (answer.code, "1       Broken    2         4     0         -2       no" in answer.out) == (7, True)
    assert "it received 2, sent 4 and rejected 0" in answer.err
    assert "[rows-unbalanced]" in answer.err


RANGES = ((40, 3), (20,))


@pytest.fixture
def split_place(tmp_path):
    """The folder of an application whose windows were over as soon as they began, and with one slot to deal to."""
    desk = Desk(tmp_path, numbers_collected(RANGES, readers=1, waits_every=5), backend=Hurried)
    desk.run()
    return desk.place


def test_every_split_is_reported_with_its_window_its_place_and_its_reason(dagkit, split_place):
    """A slot stops where the next one begins: the splits of a block follow one another."""
    document = dagkit("splits", split_place, "--json").document
    splits = document["splits"]
    kept = [
        fact
        for entry in history(Ledger.open(split_place))
        for fact in entry.checkpoint.facts
        if isinstance(fact, Split)
    ]
    assert document["schema"] == "dagkit.splits/1"
    assert len(splits) == len(kept) >= 4
    first = splits[0]
    assert (first["window"], first["slot"], first["block"], first["source"]) == (1, 0, 0, "numbers")
    assert first["start"] < first["at"] < first["end"] == 40
    # on a slow machine the scheduler splits blocks too, by the time that it measured, for a reason of its own
    assert first["why"] == "its window was over"
    assert all(split["why"] for split in splits)
    of_first = [split for split in splits if split["block"] == 0]
    assert [split["start"] for split in of_first] == [0, *(split["at"] for split in of_first[:-1])]
    header, *rows = dagkit("splits", split_place).out.splitlines()
    assert header.split() == ["window", "slot", "block", "from", "split", "at", "to", "why", "source"]
    assert all(split["why"] in row for split, row in zip(splits, rows, strict=True))


def test_where_nothing_was_split_or_waits_or_there_is_no_ledger_it_says_so(dagkit, split_place, tmp_path):
    assert dagkit("splits", split_place, "--source", "letters").out == "nothing was split\n"
    assert dagkit("splits", split_place, "--waiting").out == "no pending work\n"
    assert dagkit("splits", str(tmp_path / "nowhere")).code == 6


def test_what_waits_is_reported_with_what_it_is_expected_to_take(dagkit, tmp_path):
    desk = Desk(tmp_path, numbers_collected(RANGES, readers=1, waits_every=5), backend=Hurried)
    desk.run(windows=1)
    document = dagkit("splits", desk.place, "--waiting", "--json").document
    rest, *others = document["waiting"]
    assert document["schema"] == "dagkit.waiting/1"
    assert all(each["element"] for each in document["waiting"]), "the ledger has no name for it"
    assert (rest["start"] + rest["positions"], rest["end"], rest["done_positions"]) == (40, 40, rest["start"])
    rate = rest["done_millis"] / rest["done_positions"]
    assert rest["expected_millis"] == pytest.approx(rate * rest["positions"], rel=0.01)
    assert [(each["start"], each["end"], each["done_positions"]) for each in others[:1]] == [(40, 43, 0)]
    header, first, *_ = dagkit("splits", desk.place, "--waiting").out.splitlines()
    assert header.split() == ["from", "to", "done", "before", "it", "expected", "source"]
    assert f"{rest['done_positions']} in " in first


def shards(home, *, windows, kind=ShardReader):
    """The folder of an application that reads four rows one by one, each in a window, and two other rows."""
    desk = Desk(home, numbers_of_names(((("x", 4),), (("y", 2),)), kind=kind), until=Until.IDLE, backend=Hurried)
    desk.run(windows=windows)
    return desk.place


def test_shares_that_were_split_and_that_wait_are_printed_in_percent(dagkit, tmp_path):
    split_place = shards(tmp_path, windows=1)
    assert dagkit("splits", split_place).out.splitlines()[1].split()[3:9] == ["0.0", "%", "25.0", "%", "100.0", "%"]
    (split,) = dagkit("splits", split_place, "--json").document["splits"]
    assert (split["start_share"], split["at_share"], split["end_share"]) == (0.0, 0.25, 1.0)
    assert dagkit("splits", split_place, "--waiting").out.splitlines()[1].startswith("25.0 %  100.0 %  25.0 % in ")
    (row,) = dagkit("splits", split_place, "--waiting", "--json").document["waiting"]
    shares = [row[name] for name in ("start_share", "end_share", "share", "done_share", "positions")]
    assert shares == [0.25, 1.0, 0.75, 0.25, None]
    assert '["x",4][25.0 %, 100.0 %) is pending' in dagkit("ledger", "verify", split_place, "--complete").err


def test_positions_have_no_shares(dagkit, tmp_path):
    split_place = shards(tmp_path, windows=1, kind=CountFn)
    (split,) = dagkit("splits", split_place, "--json").document["splits"]
    assert (split["at"], split["at_share"]) == (1, None)
    (row,) = dagkit("splits", split_place, "--waiting", "--json").document["waiting"]
    assert (row["positions"], row["share"]) == (3, None)


@pytest.mark.parametrize(
    ("kind", "windows", "done", "waiting", "count"),
    [
        (ShardReader, 1, 0.25, 0.75, "0.25 elements, every one read once, 0.75 elements wait"),
        (ShardReader, None, 2.0, 0.0, "2 elements, every one read once"),
        (TableReader, None, 2.0, 0.0, "2 elements, every one read once"),
        (CountFn, None, 0.0, 0.0, "6 positions, every one read once"),
        (CountFn, 1, 0.0, 0.0, "1 position, every one read once"),
    ],
)
def test_shares_are_verified_as_elements(dagkit, tmp_path, *, kind, windows, done, waiting, count):
    split_place = shards(tmp_path, windows=windows, kind=kind)
    assert count in dagkit("ledger", "verify", split_place).out.splitlines()[-1]
    (proven,) = dagkit("ledger", "verify", split_place, "--json").document["proven"]
    assert (proven["elements"], proven["waiting_elements"]) == (done, waiting)
    assert (proven["positions"] > 0) is (kind is CountFn)
