"""On Spark the number of readers follows the backlog, on classic sessions and behind Connect."""

from dagkit.engine.history.backlogs import decisions
from dagkit.launching import launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.scaling import ScalingInputs, decide
from tests.backends.places import ON_BOTH
from tests.engine.cast import some_lines
from tests.engine.changes.test_listeners import lines


@ON_BOTH
def test_one_file_is_read_on_all_cores_from_the_first_window_on(session, tmp_path):
    (tmp_path / "in").mkdir()
    text = some_lines(3000)
    (tmp_path / "in" / "one.txt").write_text(text)
    launch(lines(tmp_path), spark=session, until="once", path=tmp_path / "app")
    ledger = Ledger.open(tmp_path / "app")
    first, *others = decisions(ledger)
    assert (first.window, first.fact.before, first.fact.after) == (1, 1, 2)
    assert [each.fact.after for each in others if each.fact.before != each.fact.after] == []
    for each in (first, *others):
        assert decide(ScalingInputs.of(each.fact.inputs)).after == each.fact.after
    written = [line for path in (tmp_path / "out").iterdir() for line in path.read_text().splitlines()]
    assert sorted(written) == sorted(text.splitlines())
    assert verify(ledger).is_valid
