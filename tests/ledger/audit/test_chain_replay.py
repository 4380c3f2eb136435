"""The fast resume equals the replay on generated chains, and the replay finds every injected fault."""

import json
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit.ledger import ChainBroken, LedgerError, checkpoint_of, transform_of
from dagkit.ledger.audit.chain_replay import replay
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.format.block import seal, unseal
from dagkit.ledger.format.hashing import canonical
from dagkit.ledger.format.recorded_work import PARTS_SCHEMA
from dagkit.ledger.rules.standing import advance
from dagkit.ledger.stores import MemoryStore
from tests.examples import examples
from tests.ledger.desk import APPLICATION, SPLITTER, STRANGER, Desk, brings_input, remark

STEPS = st.lists(
    st.sampled_from(
        [
            "discover",
            "discover two",
            "watermark",
            "window",
            "empty window",
            "state",
            "remark",
            "remark on parts",
            "retransform",
        ]
    ),
    min_size=1,
    max_size=25,
)


def act(desk: Desk, steps: list[str]) -> Desk:
    """The desk after an engine did these things."""
    for number, step in enumerate(steps):
        at = 0 if desk.root.standing.offset is None else (desk.root.standing.offset + 1) * 10
        desk.clock.advance(seconds=1)
        if step == "discover":
            desk.discover((at, at + 10))
        elif step == "discover two":
            desk.discover((at, at + 10), (at + 10, at + 20))
        elif step == "watermark":
            desk.root.append(desk.root.plan_next().add_data(watermark=desk.clock.now()))
        elif step == "remark":
            desk.root.append(remark(f"step {number}"))
        elif step == "remark on parts":
            desk.app.append(remark(f"step {number}", PARTS_SCHEMA))
        elif step == "retransform":
            desk.ledger.application(APPLICATION, [SPLITTER], transform_of(f"plan {number}", "0.1.0"))
        elif brings_input(desk.app.plan_next()):
            window(desk, step, number)
    return desk


def window(desk: Desk, step: str, number: int) -> None:
    if step == "window":
        desk.window(3)
    elif step == "empty window":
        desk.window()
    else:
        planned = desk.app.plan_next()
        content = json.dumps({"state": number}).encode()
        desk.app.append(planned.execute(checkpoint=checkpoint_of(content)), [content], planned=planned)


@given(STEPS)
def test_resuming_knows_what_replaying_the_whole_chain_knows(steps):
    desk = act(Desk(), steps)
    again = desk.reopened()
    for chain, live in ((again.root, desk.root), (again.app, desk.app)):
        replayed = [advance(before, record) for before, record in replay(chain, lambda _: again.root.as_input)]
        assert replayed[-1] == chain.standing == live.standing
        assert chain.plan_next() == live.plan_next()


@given(STEPS)
@settings(max_examples=examples(30))
def test_resuming_from_any_prefix_is_as_good(steps):
    desk = act(Desk(), steps)
    for chain in (desk.root, desk.app):
        standings = [advance(before, record) for before, record in replay(chain, lambda _: desk.root.as_input)]
        for length, standing in enumerate(standings, 1):
            prefix = MemoryStore()
            for seq in range(length):
                prefix.create(chain.log.block_key(seq), chain.log.line(seq))
            other = type(chain).open(prefix, chain.log.folder, chain.name, clock=desk.clock)
            assert other.standing == standing


@given(STEPS)
@settings(max_examples=examples(30))
def test_an_honest_ledger_is_well(steps):
    assert verify(act(Desk(), steps).reopened().ledger).is_valid


# ---- faults


@dataclass(frozen=True)
class Victim:
    """A store whose chain is to be hurt at one block."""

    store: MemoryStore
    desk: Desk
    chain: str
    seq: int

    @property
    def key(self) -> str:
        return self.log.block_key(self.seq)

    @property
    def log(self):
        return (self.desk.root if self.chain == SPLITTER else self.desk.app).log

    def rewrite(self, line: bytes, seq: int | None = None) -> None:
        self.store.replace(self.log.block_key(self.seq if seq is None else seq), line)

    def reseal(self, edit) -> None:
        """Change the block and give it the hash that it then has, as a forger would."""
        record = unseal(self.log.line(self.seq), self.chain, self.seq)
        document = json.loads(self.log.line(self.seq))
        edit(document)
        block = type(record.block).model_validate(document["block"])
        carry = type(record.carry).model_validate(document["carry"])
        self.rewrite(seal(block, carry, record.objects)[1])


def dropped(victim, data):
    victim.store.delete([victim.key])


def swapped(victim, data):
    other = data.draw(st.integers(0, victim.log.find().last).filter(lambda s: s != victim.seq), label="with")
    mine, its = victim.log.line(victim.seq), victim.log.line(other)
    victim.rewrite(its)
    victim.rewrite(mine, other)
    return other


def truncated(victim, data):
    line = victim.log.line(victim.seq)
    victim.rewrite(line[: data.draw(st.integers(0, len(line) - 1), label="bytes left")])


def bit_flipped(victim, data):
    line = bytearray(victim.log.line(victim.seq))
    line[data.draw(st.integers(0, len(line) - 1), label="byte")] ^= 1 << data.draw(st.integers(0, 7), label="bit")
    victim.rewrite(bytes(line))


def relinked(victim, data):
    victim.reseal(lambda d: d["block"].update(prevBlockHash=STRANGER))


def forged_time(victim, data):
    victim.reseal(lambda d: d["block"].update(systemTime="2024-01-01T00:00:00.000001Z"))


def forged_carry(victim, data):
    victim.reseal(lambda d: d["carry"].update(slice={"seq": 0, "hash": STRANGER}))


def forged_offset(victim, data):
    victim.reseal(lambda d: d["block"]["event"].update(prevOffset=10**6))


def missing_slice(victim, data):
    document = json.loads(victim.log.line(victim.seq))
    document["objects"].pop(document["block"]["event"]["newData"]["physicalHash"])
    if not document["objects"]:
        document.pop("objects")
    victim.rewrite(canonical(document).encode() + b"\n")


ANYWHERE = [dropped, swapped, truncated, bit_flipped, relinked, forged_time, forged_carry]


def a_victim(data, *, with_data: bool = False) -> Victim:
    steps = [*data.draw(STEPS, label="steps"), "discover", "window", "info", "discover", "window"]
    desk = act(Desk(), steps)
    name = data.draw(st.sampled_from([SPLITTER, APPLICATION]), label="chain")
    chain = desk.root if name == SPLITTER else desk.app
    fitting = [r.seq for r in chain.records() if not with_data or getattr(r.block.event, "new_data", None) is not None]
    return Victim(desk.store, desk, name, data.draw(st.sampled_from(fitting), label="block"))


def found(victim: Victim) -> list[tuple[str | None, int | None]]:
    """Where the verifier says that something is wrong."""
    return [(f.chain, f.block) for f in verify(victim.desk.reopened_ledger()).faults if not f.is_warning]


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("fault", ANYWHERE, ids=lambda f: f.__name__)
@given(data=st.data())
@settings(max_examples=examples(150))
def test_a_fault_anywhere_is_noticed_and_its_block_is_named(fault, data):
    victim = a_victim(data)
    before = victim.log.line(victim.seq)
    other = fault(victim, data)
    if victim.store.exists(victim.key) and victim.log.line(victim.seq) == before:
        return
    places = found(victim)
    assert places, "the fault went unnoticed"
    near = {(victim.chain, seq) for seq in (victim.seq, victim.seq + 1, other) if seq is not None}
    assert near & set(places), f"{victim.chain} {victim.seq} is not among {places}"


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("fault", [forged_offset, missing_slice], ids=lambda f: f.__name__)
@given(data=st.data())
@settings(max_examples=examples(150))
def test_a_fault_of_data_is_noticed_and_its_block_is_named(fault, data):
    victim = a_victim(data, with_data=True)
    fault(victim, data)
    assert (victim.chain, victim.seq) in found(victim)


def test_a_whole_history_forged_to_the_end_is_noticed_by_its_head(desk):
    """An attacker who rewrites every block from one on must rewrite the head and the consumed positions too."""
    desk.discover((0, 10))
    desk.window(1)
    record = desk.root.read(2)
    forged, line = seal(
        record.block.model_copy(update={"system_time": desk.clock.advance(seconds=9)}), record.carry, record.objects
    )
    desk.store.replace(desk.root.log.block_key(2), line)
    with pytest.raises(ChainBroken) as caught:
        desk.reopened()
    assert caught.value.code == "head-forged"
    desk.root.log.set_hint(forged.pointer)
    faults = verify(desk.reopened().ledger).faults
    assert [(f.code, f.chain, f.block) for f in faults if not f.is_warning] == [
        ("link-broken", SPLITTER, 2),
        ("input-block-missing", APPLICATION, 3),
    ]


def test_a_link_to_another_past_is_named_as_such(desk):
    desk.discover((0, 10))
    desk.discover((10, 20))
    Victim(desk.store, desk, SPLITTER, 2).reseal(lambda d: d["block"].update(prevBlockHash=STRANGER))
    assert [(f.code, f.block) for f in verify(desk.reopened_ledger()).faults if not f.is_warning] == [
        ("link-broken", 2)
    ]


def test_pointers_that_lead_astray_are_noticed(desk):
    """The record is sealed again, and the hint follows it: only the pointer itself is wrong."""
    desk.discover((0, 10))
    desk.discover((10, 20))
    victim = Victim(desk.store, desk, SPLITTER, 3)
    victim.reseal(lambda d: d["carry"].pop("slice"))
    desk.root.log.set_hint(desk.root.log.record(3).pointer)
    assert [(f.code, f.block) for f in verify(desk.reopened_ledger()).faults if not f.is_warning] == [
        ("carry-forged", 3)
    ]


def test_a_data_block_without_its_key_pointer_is_noticed_on_opening(desk):
    desk.discover((0, 10))
    Victim(desk.store, desk, SPLITTER, 2).reseal(lambda d: d["carry"].pop("key"))
    desk.root.log.set_hint(desk.root.log.record(2).pointer)
    with pytest.raises(ChainBroken) as caught:
        desk.reopened()
    assert (caught.value.code, caught.value.fault.block) == ("carry-forged", 2)


def test_a_rewritten_key_block_is_noticed_on_opening(desk):
    """It has a right hash of its own; the pointer that every later block carries knows another."""
    desk.discover((0, 10))
    Victim(desk.store, desk, SPLITTER, 1).reseal(lambda d: d["block"].update(systemTime="2024-01-01T00:00:00.000001Z"))
    with pytest.raises(ChainBroken) as caught:
        desk.reopened()
    assert (caught.value.code, caught.value.fault.block) == ("link-broken", 1)


def test_a_broken_input_does_not_hide_what_is_wrong_elsewhere(desk):
    desk.discover((0, 10))
    desk.window(1)
    for chain in (desk.root, desk.app):
        desk.store.delete([chain.log.block_key(1)])
    assert sorted((f.code, f.chain) for f in verify(desk.reopened_ledger()).faults) == [
        ("block-missing", SPLITTER),
        ("block-missing", APPLICATION),
    ]


def test_a_fault_in_the_past_does_not_stop_the_present(desk):
    """Opening reads the end only: that is what makes it cheap, and why verifying is a command of its own."""
    for start in range(0, 50, 10):
        desk.discover((start, start + 10))
    line = desk.root.log.line(3)
    desk.store.replace(desk.root.log.block_key(3), line.replace(b'"size":', b'"size" '))
    assert desk.reopened().root.standing == desk.root.standing
    with pytest.raises(LedgerError):
        list(desk.root.records())
