"""`dagkit scale`: why there are so many partitions, and how many there would have been."""

import pytest

from dagkit.scaling import ScalingSettings
from tests.engine.cast import Desk, Hurried, some_lines
from tests.engine.changes.test_listeners import Roomy, lines
from tests.engine.recording import MIB, Recording, burst


def test_explain_shows_every_decision(dagkit, tmp_path):
    burst(tmp_path)
    first, second = dagkit("scale", "explain", str(tmp_path / "app")).out.splitlines()
    assert first == (
        "2024-01-01T00:00:00.000+00:00 reader, by drain: 100 blocks wait, 105M positions; 4 cores; "
        "1 becomes 4: as many as can work at once, because no speed is measured yet"
    )
    assert second.startswith("2024-01-01T00:01:30.000+00:00 reader, by drain: 1 block waits")
    assert second.endswith("0.4 s with 1 and 0.4 s with 4; 4 become 1: as many as can work at once")


def test_explain_in_json_has_the_inputs_and_decides_again(dagkit, tmp_path):
    burst(tmp_path)
    document = dagkit("scale", "explain", str(tmp_path / "app"), "--json").document
    assert document["schema"] == "dagkit.scaling/1"
    told = document["decisions"]
    assert [(d["window"], d["before"], d["after"], d["decided_again"]) for d in told] == [(1, 1, 4, 4), (3, 4, 1, 1)]
    assert told[0]["inputs"]["backlog"]["blocks"] == 100


def test_explain_keeps_to_one_operator_and_to_changes(dagkit, tmp_path):
    recording = Recording(tmp_path)
    recording.find(1)
    recording.run(MIB, 1, [recording.decide()])
    path = str(tmp_path / "app")
    assert "1 stays" in dagkit("scale", "explain", path, "--operator", "reader").out
    assert dagkit("scale", "explain", path, "--changes").out == "nothing was decided\n"


def test_an_operator_without_decisions_is_reported_with_those_that_there_are(dagkit, tmp_path):
    burst(tmp_path)
    for verb in ("explain", "simulate"):
        answer = dagkit("scale", verb, str(tmp_path / "app"), "--operator", "raeder")
        assert (answer.code, answer.out) == (6, "")
        assert (
            answer.err == "no decision was recorded for 'raeder' [decision-missing]\n  help: did you mean 'reader'?\n"
        )


def test_settings_of_a_simulation_may_be_spelled_as_in_a_property_file(dagkit, tmp_path):
    burst(tmp_path)
    answer = dagkit("scale", "simulate", str(tmp_path / "app"), "--set", "maxReaders=1", "--json")
    assert answer.document["settings"]["max_partitions"] == 1


def test_its_help_lists_its_own_commands_in_one(dagkit):
    told = dagkit("scale", "--help").out
    assert "Commands:" in told
    assert "Compile an application" not in told


def test_simulate_sets_what_was_beside_what_would_have_been(dagkit, tmp_path):
    burst(tmp_path)
    path = str(tmp_path / "app")
    document = dagkit("scale", "simulate", path, "--set", "max_readers=1", "--json").document
    was, again, other = document["courses"]
    assert (document["operator"], document["settings"]["max_partitions"]) == ("reader", 1)
    assert (was["what"], was["backlog_millis"], was["most"], was["changes"]) == ("recorded", 10_500, 4, 2)
    assert again["backlog_millis"] == pytest.approx(10_500, rel=0.1)
    assert 19_000 < other["backlog_millis"] < 22_000  # by one slot of each of two windows
    assert (other["most"], other["changes"]) == (1, 0)


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


def test_simulate_for_people(dagkit, tmp_path):
    burst(tmp_path)
    headline, header, *rows = dagkit("scale", "simulate", str(tmp_path / "app")).out.splitlines()
    assert headline == "reader: 101 blocks came"
    assert header.split("  ")[-1] == "time of slots"
    assert [row.split("  ")[0] for row in rows] == ["recorded", "simulated, as it was"]


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("max_reader=3", "'max_reader' is not one of policy, min_partitions"),
        ("max_readers", "the form NAME=VALUE"),
        ("max_readers=many", "max_partitions: Input should be a valid integer"),
        ("min_readers=9", "min_partitions 9 is greater than max_partitions 4"),
    ],
)
def test_what_cannot_be_set_is_reported(dagkit, tmp_path, setting, told):
    burst(tmp_path, ScalingSettings(max_partitions=4))
    answer = dagkit("scale", "simulate", str(tmp_path / "app"), "--set", setting)
    assert answer.code == 2
    assert told in " ".join(answer.err.replace("│", "").split())


def test_a_bound_can_be_taken_away(dagkit, tmp_path):
    burst(tmp_path, ScalingSettings(max_partitions=2))
    path = str(tmp_path / "app")
    assert dagkit("scale", "simulate", path, "--set", "max_readers=none", "--json").document["courses"][2]["most"] == 4


def test_where_nothing_was_decided_there_is_nothing_to_simulate(dagkit, tmp_path):
    recording = Recording(tmp_path)
    recording.find(1)
    recording.run(MIB, 1, [])
    answer = dagkit("scale", "simulate", str(tmp_path / "app"))
    assert answer.code == 6
    assert answer.err.startswith("no operator of this application has looked at its backlog yet [decision-missing]\n")


@pytest.mark.parametrize("verb", ["explain", "simulate"])
def test_a_folder_without_a_ledger_is_reported(dagkit, tmp_path, verb):
    assert dagkit("scale", verb, str(tmp_path)).code == 6
