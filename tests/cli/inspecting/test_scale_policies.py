"""A policy of a third party, by its entry point or by the place of its class: launched, explained and simulated."""

import pytest

from dagkit import Until
from dagkit.engine.program.facts import Scaled
from dagkit.engine.record.history import history
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.scaling import Drain
from tests.engine.cast import some_lines
from tests.engine.parts.test_listeners import lines
from tests.old_files import aged
from tests.scaling.steady import install


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
