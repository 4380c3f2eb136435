"""The fast resume equals the replay on generated chains, and the replay finds every injected fault."""

import json
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit.ledger import Chain, ChainBroken, LedgerError, transform_of
from dagkit.ledger.audit.chain_replay import replay
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.format.block import seal, unseal
from dagkit.ledger.format.hashing import canonical
from dagkit.ledger.format.recorded_work import PARTS_SCHEMA
from dagkit.ledger.rules.standing import advance
from dagkit.ledger.stores import MemoryStore
from tests.examples import examples
from tests.ledger.desk import APPLICATION, SPLITTER, STRANGER, Desk, brings_input, code_of, fault_of, faults_in, remark


def again(desk: Desk, number: int) -> None:
    desk.ledger.application(APPLICATION, [SPLITTER], transform_of(f"plan {number}", "0.1.0"))


def found(desk: Desk, stretches: int) -> None:
    at = 0 if desk.root.standing.offset is None else (desk.root.standing.offset + 1) * 10
    desk.discover(*((at + 10 * n, at + 10 * n + 10) for n in range(stretches)))


ACTS = {
    "discover": lambda desk, _: found(desk, 1),
    "discover two": lambda desk, _: found(desk, 2),
    "watermark": lambda desk, _: desk.mark(),
    "remark": lambda desk, number: desk.root.append(remark(f"step {number}")),
    "remark on parts": lambda desk, number: desk.app.append(remark(f"step {number}", PARTS_SCHEMA)),
    "retransform": again,
}
WINDOWS = {
    "window": lambda desk, _: desk.window(3),
    "empty window": lambda desk, _: desk.window(),
    "state": lambda desk, number: desk.keep(json.dumps({"state": number}).encode()),
}
STEPS = st.lists(st.sampled_from([*ACTS, *WINDOWS]), min_size=1, max_size=25)


def act(desk: Desk, steps: list[str]) -> Desk:
    """The desk after an engine did these things; a window needs input."""
    for number, step in enumerate(steps):
        desk.clock.advance(seconds=1)
        if step in ACTS:
            ACTS[step](desk, number)
        elif brings_input(desk.app.plan_next()):
            WINDOWS[step](desk, number)
    return desk


@given(STEPS)
def test_resuming_knows_what_replaying_the_whole_chain_knows_and_an_honest_ledger_is_valid(steps):
    desk = act(Desk(), steps)
    again = desk.reopened()
    assert verify(again.ledger).is_valid
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
            again = Chain(prefix, chain.log.folder, chain.name, clock=desk.clock)
            again.reopen()
            assert again.standing == standing


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
        self.rewrite(seal(block, type(record.carry).model_validate(document["carry"]), record.objects)[1])


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


def resealed(edit):
    """A fault: the block is edited, and sealed again."""
    return lambda victim, data: victim.reseal(edit)


def relink(document):
    document["block"]["prevBlockHash"] = STRANGER


def retime(document):
    document["block"]["systemTime"] = "2024-01-01T00:00:00.000001Z"


def missing_slice(victim, data):
    document = json.loads(victim.log.line(victim.seq))
    document["objects"].pop(document["block"]["event"]["newData"]["physicalHash"])
    if not document["objects"]:
        document.pop("objects")
    victim.rewrite(canonical(document).encode() + b"\n")


ANYWHERE = {
    **{fault.__name__: fault for fault in (dropped, swapped, truncated, bit_flipped)},
    "relinked": resealed(relink),
    "forged time": resealed(retime),
    "forged carry": resealed(lambda d: d["carry"].update(slice={"seq": 0, "hash": STRANGER})),
}
IN_DATA = {
    "forged offset": resealed(lambda d: d["block"]["event"].update(prevOffset=10**6)),
    "missing slice": missing_slice,
}


def a_victim(data, *, with_data: bool = False) -> Victim:
    steps = [*data.draw(STEPS, label="steps"), "discover", "window", "discover", "window"]
    desk = act(Desk(), steps)
    name = data.draw(st.sampled_from([SPLITTER, APPLICATION]), label="chain")
    chain = desk.root if name == SPLITTER else desk.app
    fitting = [r.seq for r in chain.records() if not with_data or getattr(r.block.event, "new_data", None) is not None]
    return Victim(desk.store, desk, name, data.draw(st.sampled_from(fitting), label="block"))


def errors(desk: Desk) -> list[tuple[str, str | None, int | None]]:
    """What the verifier says is wrong, and where."""
    return [fault for fault in faults_in(desk) if fault[0] != "bytes-unread"]


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("fault", ANYWHERE.values(), ids=ANYWHERE)
@given(data=st.data())
@settings(max_examples=examples(150))
def test_a_fault_anywhere_is_noticed_and_its_block_is_named(fault, data):
    victim = a_victim(data)
    before = victim.log.line(victim.seq)
    other = fault(victim, data)
    if victim.store.exists(victim.key) and victim.log.line(victim.seq) == before:
        return
    places = [place for _, *place in errors(victim.desk)]
    assert places, "the fault went unnoticed"
    near = [[victim.chain, seq] for seq in (victim.seq, victim.seq + 1, other) if seq is not None]
    assert any(place in near for place in places), f"{victim.chain} {victim.seq} is not among {places}"


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("fault", IN_DATA.values(), ids=IN_DATA)
@given(data=st.data())
@settings(max_examples=examples(150))
def test_a_fault_of_data_is_noticed_and_its_block_is_named(fault, data):
    victim = a_victim(data, with_data=True)
    fault(victim, data)
    assert (victim.chain, victim.seq) in [(chain, block) for _, chain, block in errors(victim.desk)]


def test_a_whole_history_forged_to_the_end_is_noticed_by_its_head(desk):
    """An attacker who rewrites every block from one on must rewrite the head and the consumed positions too."""
    desk.discover((0, 10))
    desk.window(1)
    Victim(desk.store, desk, SPLITTER, 2).reseal(lambda d: d["block"].update(systemTime="2024-01-01T00:00:11Z"))
    assert code_of(desk.reopened, ChainBroken) == "head-forged"
    desk.root.log.set_hint(desk.root.log.record(2).pointer)
    assert errors(desk) == [("link-broken", SPLITTER, 2), ("input-block-missing", APPLICATION, 3)]


@pytest.mark.parametrize(
    ("seq", "edit", "fault"),
    [(2, relink, ("link-broken", SPLITTER, 2)), (3, lambda d: d["carry"].pop("slice"), ("carry-forged", SPLITTER, 3))],
    ids=["to another past", "astray"],
)
def test_a_link_or_a_pointer_that_leads_elsewhere_is_named(desk, seq, edit, fault):
    """The record is sealed again, and the hint follows the last one: only the link is wrong."""
    desk.discover((0, 10))
    desk.discover((10, 20))
    Victim(desk.store, desk, SPLITTER, seq).reseal(edit)
    desk.root.log.set_hint(desk.root.log.record(3).pointer)
    assert errors(desk) == [fault]


@pytest.mark.parametrize(
    ("seq", "edit", "fault"),
    [(2, lambda d: d["carry"].pop("key"), ("carry-forged", 2)), (1, retime, ("link-broken", 1))],
    ids=["a data block without its pointer", "another key block"],
)
def test_a_forged_key_block_is_noticed_on_opening(desk, seq, edit, fault):
    """A key block has a right hash of its own; the pointer that every later block carries knows another."""
    desk.discover((0, 10))
    Victim(desk.store, desk, SPLITTER, seq).reseal(edit)
    desk.root.log.set_hint(desk.root.log.record(2).pointer)
    assert fault_of(desk.reopened, ChainBroken) == fault


def test_a_broken_input_does_not_hide_what_is_wrong_elsewhere(desk):
    desk.discover((0, 10))
    desk.window(1)
    for chain in (desk.root, desk.app):
        desk.store.delete([chain.log.block_key(1)])
    assert [fault[:2] for fault in faults_in(desk)] == [("block-missing", SPLITTER), ("block-missing", APPLICATION)]


def test_a_fault_in_the_past_does_not_stop_the_present(desk):
    """Opening reads the end only: that is what makes it cheap, and why verifying is a command of its own."""
    for start in range(0, 50, 10):
        desk.discover((start, start + 10))
    line = desk.root.log.line(3)
    desk.store.replace(desk.root.log.block_key(3), line.replace(b'"size":', b'"size" '))
    assert desk.reopened().root.standing == desk.root.standing
    with pytest.raises(LedgerError):
        list(desk.root.records())
