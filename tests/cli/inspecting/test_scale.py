"""`dagkit scale`: why there are so many partitions, and how many there would have been."""

import pytest

from dagkit import Until
from dagkit.engine.program.facts import Scaled
from dagkit.engine.record.history import history
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.scaling import Drain, ScalingSettings
from tests.engine.cast import Desk, Hurried, some_lines
from tests.engine.parts.test_listeners import Roomy, lines
from tests.engine.recording import MIB, Recording, burst
from tests.old_files import aged
from tests.scaling.steady import install


@pytest.fixture
def place(tmp_path):
    """The folder of an application whose reader got a hundred blocks at once."""
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
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.txt").write_text(some_lines(300))
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
