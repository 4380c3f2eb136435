"""Facts of our own stand in the chain, in a form that the fabric knows, and are found without walking."""

from dagkit.ledger.audit.verify import verify
from dagkit.ledger.facts import Fact, state, stated, stated_in
from dagkit.ledger.format.events import SetAttachments


def test_facts_come_back_last_first_however_many_windows_lie_between(desk):
    told = [Fact("scaled", {"from": 1, "to": n}) for n in (2, 4, 8)]
    for number, fact in enumerate(told):
        state(desk.app, fact)
        for start in range(number * 100, number * 100 + 100, 10):
            desk.discover((start, start + 10))
            desk.window(1)
    again = desk.reopened().app
    before = again.log.blocks_read
    assert [fact for _, fact in stated(again)] == told[::-1]
    assert again.log.blocks_read - before <= 2 * len(told) + 2
    assert verify(desk.reopened_ledger()).is_complete


def test_several_facts_may_be_stated_at_once(desk):
    record = state(desk.app, Fact("property", {"min_readers": 3}), Fact("scaled", None))
    assert isinstance(record.block.event, SetAttachments)
    assert stated_in(record) == (Fact("property", {"min_readers": 3}), Fact("scaled", None))


def test_a_fact_is_an_embedded_attachment(desk):
    event = state(desk.root, Fact("split", [1, 2])).block.event.as_json()
    assert event == {
        "kind": "SetAttachments",
        "attachments": {"kind": "Embedded", "items": [{"path": "dagkit/split.json", "content": "[1,2]"}]},
    }


def test_a_block_without_facts_states_none(desk):
    assert stated_in(desk.root.read(0)) == ()
    assert list(stated(desk.root)) == []
