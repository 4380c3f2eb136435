"""What is carried from checkpoint to checkpoint is stored as what changed, and every checkpoint is read as a whole."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.engine.program.points import Point
from dagkit.engine.record import stored as additions
from dagkit.engine.record import stored as stored_checkpoint
from dagkit.engine.record.history import history
from dagkit.engine.record.stored import (
    EARLIER_TEXTS,
    CheckpointReader,
    StoredCheckpoint,
    StoredState,
    carried_of,
    parts_of,
)
from dagkit.ledger import ExecuteTransform
from dagkit.testing.crashes import CrashAfter
from tests.engine.cast import Collect, Desk, Script, arrived, chain, files_given, lines_through_filter, some_lines


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


def stored(states: Sequence[Mapping[str, Any]]) -> list[str]:
    """The documents of these states, in blocks that are numbered from 3 on."""
    last, documents = StoredState({}), []
    for seq, state in enumerate(states, 3):
        last, document = last.after(state, seq)
        documents.append(json.dumps(document))
    return documents


def read(documents: Sequence[str], seq: int) -> tuple[StoredState, dict[str, Any], list[int]]:
    """The state of one block, and the numbers of the other blocks that it took."""
    asked: list[int] = []

    def document(number: int) -> Any:
        asked.append(number)
        return json.loads(documents[number - 3])

    return *StoredState.read(json.loads(documents[seq - 3]), seq, document), asked


@pytest.fixture(autouse=True)
def nothing_is_stored_whole(monkeypatch):
    monkeypatch.setattr(additions, "WHOLE", 0)


def test_only_what_was_added_is_stored_and_short_parts_are_joined():
    documents = stored([{"known": "abcdefgh"[: 2 * n], "count": n} for n in range(1, 5)])
    assert list(map(json.loads, documents)) == [
        {"known": "ab", "count": 1},
        {"known": "abcd", "count": 2},
        {"known": "ef", "count": 3, EARLIER_TEXTS: {"known": [[4, 4]]}},
        {"known": "abcdefgh", "count": 4},
    ]


GROWTH = st.lists(st.tuples(st.sampled_from(["grow", "grow", "grow", "rewrite", "drop"]), st.text("ab", max_size=9)))


@given(GROWTH)
def test_every_stored_state_comes_back_whole(growth):
    states: list[dict[str, Any]] = [{"known": ""}]
    for kind, text in growth:
        known = states[-1].get("known", "")
        states.append({} if kind == "drop" else {"known": known + text if kind == "grow" else text, "n": len(states)})
    documents = stored(states)
    for seq, state in enumerate(states, 3):
        assert read(documents, seq)[1] == state


@given(GROWTH, GROWTH)
def test_a_launch_that_resumes_stores_as_the_one_before_would_have(before, after):
    states, known = [], ""
    for _, text in [*before, ("grow", "x"), *after]:
        known += text
        states.append({"known": known})
    documents, seq = stored(states), 3 + len(before)
    resumed, _, _ = read(documents, seq)
    for number, state in enumerate(states[len(before) + 1 :], seq + 1):
        resumed, document = resumed.after(state, number)
        assert json.dumps(document) == documents[number - 3]


def test_a_thousand_additions_have_few_parts_and_are_written_few_times():
    documents = stored([{"known": "x" * 100 * n} for n in range(1, 1001)])
    assert max(len(read(documents, seq)[2]) for seq in range(3, 1003)) <= 10
    assert sum(map(len, documents)) < 8 * 100 * 1000


def test_a_text_that_did_not_grow_costs_nothing():
    documents = stored([{"known": "x" * 10**6}] + [{"known": "x" * 10**6, "at": n} for n in range(9)])
    assert max(map(len, documents[1:])) < 100
    assert read(documents, 12)[1] == {"known": "x" * 10**6, "at": 8}


def test_a_state_that_was_stored_whole_is_not_written_again():
    """As an earlier release stored it."""
    before, state = StoredState.read({"known": "x" * 10**6}, 7, lambda seq: {})[0], {"known": "x" * 10**6 + "y"}
    assert before.after(state, 8)[1] == {"known": "y", EARLIER_TEXTS: {"known": [[7, 10**6]]}}


@pytest.mark.slow
@pytest.mark.parametrize("crashes", [0, 4])
def test_what_a_splitter_knows_is_added_to_its_chain_and_resumed(crashes, tmp_path):
    files_given(tmp_path, *(some_lines(3, seed=number) for number in range(12)))
    desk = Desk(tmp_path, lines_through_filter(tmp_path, block_size=1000, threshold=1))
    assert desk.crash(*(CrashAfter(Point.FINISHED, n + 1) for n in range(crashes))) == crashes
    loop = desk.run()
    events = [record.block.event for record in desk.ledger().chain("splitter").records()]
    states = [event.new_source_state for event in events if getattr(event, "new_source_state", None)]
    added = [len(json.loads(state.value)["known"]) // 16 for state in states]
    assert added == [1, 2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4]
    assert len(desk.loop().run_state.journal.state_of("splitter")["known"]) == 12 * 16
    assert (desk.faults(), loop.checkpoint.window) == ([], desk.run().checkpoint.window)
