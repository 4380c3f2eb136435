"""What is carried from checkpoint to checkpoint is stored as what changed, and every checkpoint is read as a whole."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.engine.program.points import Point
from dagkit.engine.record import stored as stored_checkpoint
from dagkit.engine.record.history import history
from dagkit.engine.record.stored import (
    CheckpointReader,
    StoredCheckpoint,
    carried_of,
    parts_of,
)
from dagkit.ledger import ExecuteTransform
from dagkit.testing.crashes import CrashAfter
from tests.engine.cast import Collect, Desk, Script, arrived, chain


class Blocks:
    """What the blocks of a chain store."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.reads = 0
        self.last = StoredCheckpoint({}, ())

    def read(self, seq: int) -> Any:
        self.reads += 1
        return json.loads(self.texts[seq])

    def store(self, *checkpoints: Mapping[str, Any]) -> None:
        for checkpoint in checkpoints:
            seq = len(self.texts) + 3
            self.last, self.texts[seq] = self.last.after(checkpoint, seq, self.read)

    def whole(self, seq: int) -> Any:
        return CheckpointReader(self.read).whole(json.loads(self.texts[seq]), seq)


def checkpoint(window: int, *counts: int, queue: Sequence[Any] = ()) -> dict[str, Any]:
    """A checkpoint in which each partition keeps a list of so many numbers."""
    return {"window": window, "state": {"op": [{"kept": list(range(count))} for count in counts]}, "queue": list(queue)}


@pytest.fixture
def parts_are_never_short(monkeypatch):
    monkeypatch.setattr(stored_checkpoint, "SHORT", 0)


def test_a_small_checkpoint_is_stored_whole():
    blocks = Blocks()
    blocks.store(*(checkpoint(window, window) for window in range(1, 9)))
    assert [json.loads(text) for text in blocks.texts.values()] == [checkpoint(n, n) for n in range(1, 9)]
    assert blocks.reads == 0


def test_a_partition_that_did_not_change_is_not_stored_again():
    blocks = Blocks()
    blocks.store(checkpoint(1, 10_000, 10_000), checkpoint(2, 10_000, 10_001), checkpoint(3, 10_000, 10_001))
    assert json.loads(blocks.texts[4]) == {
        "window": 2,
        "earlier": [[3, len(blocks.texts[3])]],
        "change": {"*": {"state": {"*": {"op": {"*": {"1": {"*": {"kept": {"<": [[0, 10_000], {"=": [10_000]}]}}}}}}}}},
    }
    own = {"window": 3, "earlier": [[3, len(blocks.texts[3])], [4, blocks.last.parts[-1].length]]}
    assert json.loads(blocks.texts[5]) == own
    assert carried_of(blocks.whole(5)) == carried_of(checkpoint(3, 10_000, 10_001))


STEPS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.lists(st.integers(0, 3), max_size=5)), min_size=1)


@pytest.mark.usefixtures("parts_are_never_short")
@given(STEPS, st.integers(0, 30))
def test_every_checkpoint_is_read_as_a_whole_also_after_a_launch_that_resumed(steps, resumed):
    blocks = Blocks()
    checkpoints = [checkpoint(n, one, other, queue=queue) for n, (one, other, queue) in enumerate(steps)]
    for number, each in enumerate(checkpoints):
        if number == resumed > 0:
            seq = max(blocks.texts)
            parts = parts_of(json.loads(blocks.texts[seq]), seq, len(blocks.texts[seq]))
            assert parts == blocks.last.parts
            blocks.last = StoredCheckpoint(carried_of(blocks.whole(seq)), parts)
        blocks.store(each)
    in_order = CheckpointReader(blocks.read)
    for seq, each in enumerate(checkpoints, 3):
        expected = {name: value for name, value in each.items() if value or name == "window"}
        assert {n: v for n, v in blocks.whole(seq).items() if v or n == "window"} == expected
        assert carried_of(in_order.whole(json.loads(blocks.texts[seq]), seq)) == carried_of(expected)


def test_a_thousand_changes_have_few_parts_and_are_written_few_times():
    blocks, kept = Blocks(), {"text": "x" * 10**6}
    for window in range(1, 1001):
        kept = kept | {f"key {window}": "y" * 1000}
        blocks.store({"window": window, "state": {"op": [kept]}})
        assert len(blocks.last.parts) <= 10
    assert blocks.whole(1002)["state"] == {"op": [kept]}
    assert sum(map(len, blocks.texts.values())) < 12 * 2 * 10**6
    sizes = sorted(map(len, blocks.texts.values()))
    assert sizes[500] < 5000


def stored_sizes(desk: Desk) -> list[int]:
    """The bytes of each checkpoint of an application."""
    ledger = desk.ledger()
    events = [record.block.event for name in ledger.names() for record in ledger.chain(name).records()]
    return [e.new_checkpoint.size for e in events if isinstance(e, ExecuteTransform) and e.new_checkpoint is not None]


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("point", [Point.PLANNED, Point.STAGED, Point.APPENDED])
def test_a_run_that_is_killed_in_any_window_resumes_from_what_changed(point, tmp_path):
    script = Script(looks=tuple(tuple(range(n * 1000, n * 1000 + 1000)) for n in range(12)), pause_millis=0)
    desk = Desk(tmp_path, chain(script=script, collect=Collect()))
    assert desk.crash(*(CrashAfter(point, window) for window in range(1, 13))) == 12
    loop = desk.run()
    assert arrived(loop) == [*range(12_000)]
    assert desk.faults() == []
    states = (entry.checkpoint.state.get("collect") for entry in history(desk.ledger()))
    counts = [len(state[0]["arrived"]) for state in states if state]
    assert counts[:12] == [1000 * window for window in range(1, 13)]
    sizes = stored_sizes(desk)
    assert max(sizes) > 30_000
    assert sum(sizes) < 4 * len(json.dumps(arrived(loop)))
