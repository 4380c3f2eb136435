"""Duplicates are dropped within the horizon; beyond it, keys are forgotten and counted."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Batch, Config, Dag, InputPort, Operator, OutputPort, State
from dagkit.launching import Machine, launch
from dagkit.testing import Alone
from dagkit_operators import Deduplicate, Items, Record, value

BATCHES = st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=5)


@pytest.mark.slow
@given(batches=BATCHES, restarts=st.booleans())
def test_the_first_item_of_each_key_is_sent_however_items_are_batched(batches, restarts):
    one_by_one, in_batches = Alone(Deduplicate()), Alone(Deduplicate())
    sent: tuple[list[str], list[str]] = ([], [])
    dropped: tuple[list[str], list[str]] = ([], [])
    for batch in batches:
        with one_by_one.window(), in_batches.window():
            one_by_one.send(*batch)
            in_batches.send_batch(batch)
        for index, alone in enumerate((one_by_one, in_batches)):
            sent[index].extend(alone.sent())
            dropped[index].extend(alone.sent("duplicates"))
        if restarts:
            one_by_one, in_batches = one_by_one.restarted(), in_batches.restarted()
    items = [item for batch in batches for item in batch]
    assert sent[0] == sent[1] == list(dict.fromkeys(items))
    assert dropped[0] == dropped[1]
    assert sorted(sent[0] + dropped[0]) == sorted(items)


@dataclass(frozen=True)
class Order:
    number: int
    text: str


@pytest.mark.parametrize(
    "key", ["number", lambda order: order.number, value.field("number")], ids=["a field", "a function", "an expression"]
)
@pytest.mark.parametrize("send", ["send", "send_batch"])
def test_the_key_is_a_field_a_function_or_an_expression(key, send):
    alone = Alone(Deduplicate(key=key))
    orders = [Order(1, "a"), Order(2, "b"), Order(1, "c")]
    with alone.window():
        alone.send(*orders) if send == "send" else alone.send_batch(orders)
        assert alone.metrics == {"duplicates_dropped": 1, "keys_forgotten": 0}
    assert alone.sent() == orders[:2]


def test_of_records_the_value_is_the_key():
    alone = Alone(Deduplicate())
    with alone.window():
        alone.send(Record(1, "a"), Record(2, "a"))
        alone.send_batch([Record(3, "a"), Record(3, "b")])
    assert alone.sent() == [Record(1, "a"), Record(3, "b")]


def test_the_keys_that_occurred_longest_ago_are_forgotten_beyond_the_number_of_keys():
    alone = Alone(Deduplicate(most_keys=2))
    for items, sent, forgotten in [
        ("ab", "ab", 0),
        ("a", "", 0),
        ("c", "c", 1),  # b, since a occurred later
        ("a", "", 0),
        ("b", "b", 1),
    ]:
        with alone.window():
            alone.send(*items)
            in_window = alone.metrics["keys_forgotten"]
        assert ("".join(alone.sent()), in_window + 0) == (sent, in_window)
        assert alone.metrics["keys_forgotten"] == forgotten
        alone = alone.restarted()


def test_memory_is_bounded_within_a_window_too():
    alone = Alone(Deduplicate(most_keys=16))
    with alone.window():
        for start in range(0, 1000, 50):
            alone.send_batch(list(range(start, start + 50)))
            assert len(alone.operator.last_seen) <= 16 + 16 // 8
    assert len(alone.operator.last_seen) == 16
    assert alone.metrics["keys_forgotten"] == 1000 - 16


def test_a_key_is_forgotten_after_so_many_windows_without_it():
    alone = Alone(Deduplicate(most_windows=2))
    sent = []
    for items in ("a", "a", "", "a", "", "", "a"):
        with alone.window():
            alone.send(*items)
        sent.append("".join(alone.sent()))
        alone = alone.restarted()
    assert sent == ["a", "", "", "a", "", "", "a"]


class Collect(Operator):
    """Keeps what it received."""

    kind = "deduplicating.collect/1"
    input = InputPort(str)
    received = State[list[str]](list)
    sent = OutputPort(str)

    def process(self, item: str) -> None:
        self.received = [*self.received, item]

    def end_window(self) -> None:
        Path("received").write_text("".join(sorted(self.received)))


def test_known_keys_move_when_the_number_of_partitions_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for partitions, letters in [(1, "abcabc"), (3, "abcabcbde"), (2, "abcabcbdeedcbaf")]:

        def populate_dag(dag: Dag, conf: Config, given: str = letters) -> None:
            items = dag.add_operator("Items", Items[str](items=tuple(given)))
            once = dag.add_operator("Deduplicate", Deduplicate[str]())
            items >> once >> dag.add_operator("Collect", Collect())

        conf = Config.of({"dt.operator.Deduplicate.attr.PARTITIONER": f"StatelessPartitioner:{partitions}"})
        launch(populate_dag, conf, until="once", machine=Machine("reference"), path="app")
        assert Path("received").read_text() == "".join(sorted(set(letters)))


def test_an_empty_batch_stays_empty():
    assert len(Alone(Deduplicate()).operator.process_batch(Batch.of([]))) == 0
