"""A text that grew is stored as what was added, and every stored state is the whole state again."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.engine.program.points import Point
from dagkit.engine.record import stored as additions
from dagkit.engine.record.stored import EARLIER_TEXTS, StoredState
from dagkit.testing.crashes import CrashAfter
from tests.engine.cast import Desk, files_given, lines_through_filter, some_lines


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
