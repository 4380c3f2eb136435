"""Policies are found by their names or places, and nothing else is called."""

import sys

import pytest
from pydantic import ValidationError

from dagkit import Backlog
from dagkit.scaling import Apex, Drain, ScalingInputs, ScalingSettings, decide
from dagkit.scaling.policy import policy_names
from dagkit_operators import LineReader
from tests.scaling.steady import CALLED, Steady, install


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    install(tmp_path / "site", monkeypatch)


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        pytest.param("steadly", "there is no policy 'steadly'; did you mean 'steadily'?", id="misspelt"),
        pytest.param("functional", "tests.scaling.steady:called is not a subclass of ScalingPolicy", id="a function"),
        pytest.param("tests.scaling.steady:Other", "is not a subclass of ScalingPolicy", id="another class"),
        pytest.param("tests.scaling.steady:Unfinished", "is abstract", id="a policy that decides nothing"),
        pytest.param("tests.scaling.steady:Steadier", "has no 'Steadier'", id="no class of the module"),
        pytest.param("antigravity:Steady", "'antigravity' is neither the application's nor", id="a foreign module"),
        pytest.param("tests.scaling.stead:Steady", "cannot be imported: ModuleNotFoundError", id="no module"),
        pytest.param("tests.scaling steady:x()", "does not name a class", id="no place at all"),
    ],
)
def test_what_is_no_policy_is_refused_and_never_called(policy, told):
    (fault,) = LineReader(policy=policy).faults
    assert fault.path == "policy"
    assert told in fault.message
    with pytest.raises(ValidationError) as refused:
        ScalingSettings(policy=policy)
    assert told in str(refused.value)
    assert CALLED == []
    assert "antigravity" not in sys.modules


def test_built_in_policies_and_those_of_entry_points_are_known():
    assert policy_names() == ["drain", "apex", "functional", "steadily"]
    assert [type(ScalingSettings(policy=name).chosen) for name in ("drain", "apex", "steadily")] == [
        Drain,
        Apex,
        Steady,
    ]


def test_the_policy_of_settings_is_made_once_and_changes_nothing_else():
    settings = ScalingSettings(policy="drain")
    assert settings.chosen is settings.chosen
    assert settings == ScalingSettings(policy="drain")
    assert "chosen" not in settings.model_dump()
    assert settings.changed({"policy": "apex"}).chosen == Apex()


def test_a_setting_that_the_policy_does_not_have_is_refused():
    (fault,) = LineReader(policy="apex", policy_settings={"apex_compact": True}).faults
    assert fault.message == "the policy apex has no setting 'apex_compact'; did you mean 'apex_compat'?"
    (fault,) = LineReader(policy="steadily", policy_settings={"goal": 0}).faults
    assert fault.message == "goal: Input should be greater than 0"


def test_a_policy_that_wants_no_partitions_is_an_error():
    settings = ScalingSettings(policy="tests.scaling.steady:Nobody")
    inputs = ScalingInputs(settings=settings, before=1, at_millis=0, backlog=Backlog(1, 1, 1))
    with pytest.raises(ValueError, match="decided for 0 partitions; at least 1 must remain"):
        decide(inputs)
