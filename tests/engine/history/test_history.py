"""What a ledger records of past windows."""

from datetime import UTC, datetime

from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.facts import Scaled, Split
from dagkit.engine.history.history import history
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from tests.engine.cast import lines_through_filter


def test_facts_come_back_as_they_were_kept():
    split = Split(into="reader.blocks", source="a.txt", start=0, at=4, end=None, block=1, why="the window was over")
    counts = {"before": 1, "after": 4, "policy": "drain", "rule": "as many as the backlog needs"}
    scaled = Scaled(operator="reader", at=datetime(2030, 1, 1, tzinfo=UTC), **counts, inputs={"blocks": 12})
    assert Checkpoint.model_validate(Checkpoint(facts=(split, scaled)).as_json()).facts == (split, scaled)


def test_every_window_is_reported_in_order(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("one\ntwo\nthree\n" * 20)
    draw = lines_through_filter(tmp_path, block_size=60)
    done = launch(draw, until="once", path=tmp_path / "app", machine=Machine("reference"))
    told = list(history(Ledger.open(tmp_path / "app")))
    assert [entry.checkpoint.window for entry in told] == list(range(1, done.window_id + 1))
    assert [entry.committed for entry in told] == sorted(entry.committed for entry in told)
