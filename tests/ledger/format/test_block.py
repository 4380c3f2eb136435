"""A record says its own hash, and is what was written or is not read at all."""

import json
from functools import reduce
from operator import getitem

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.ledger import ChainBroken, LedgerError, VersionUnreadable
from dagkit.ledger.format.block import seal, unseal
from dagkit.ledger.format.hashing import canonical, hash_of
from tests.ledger.desk import APPLICATION, Desk, code_of


def a_line() -> bytes:
    """The record of a window with data, a checkpoint and an input."""
    desk = Desk()
    desk.discover((0, 10))
    return desk.app.log.line(desk.window(3, consumed=[(0, 10)]).seq)


LINE = a_line()


def refused(line: bytes, seq: int = 3) -> str:
    """The code under which a record is refused that is not what it was."""
    return code_of(lambda: unseal(line, APPLICATION, seq), ChainBroken)


def test_a_record_comes_back_equal():
    record = unseal(LINE, APPLICATION, 3)
    assert seal(record.block, record.carry, record.objects) == (record, LINE)


def test_the_hash_is_over_the_block_and_what_it_carries():
    document = json.loads(LINE)
    body = {part: document[part] for part in ("block", "carry", "format")}
    assert document["hash"] == hash_of(canonical(body).encode())


@given(st.integers(0, len(LINE) - 1), st.integers(0, 7))
def test_a_flipped_bit_is_noticed_wherever_it_is(place, bit):
    forged = bytearray(LINE)
    forged[place] ^= 1 << bit
    with pytest.raises(LedgerError) as caught:
        unseal(bytes(forged), APPLICATION, 3)
    assert (caught.value.fault.chain, caught.value.fault.block) == (APPLICATION, 3)


@given(st.integers(0, len(LINE) - 1))
def test_a_record_that_ends_early_is_torn(size):
    assert refused(LINE[:size]) == "block-torn"


def test_a_record_under_another_number_is_misplaced_and_a_flipped_bit_in_a_name_is_no_field_of_the_future():
    assert refused(LINE, seq=4) == "block-misplaced"
    assert refused(LINE.replace(b'"newOffset"', b'"newOffsft"', 1)) == "block-damaged"


def test_a_later_version_is_refused_by_name():
    later = LINE.replace(b"dagkit.block/1", b"dagkit.block/2")
    with pytest.raises(VersionUnreadable, match=r"'dagkit\.block/2', but this dagkit reads 'dagkit\.block/1'"):
        unseal(later, APPLICATION, 3)


def resealed(document: dict) -> bytes:
    """The document with a matching hash, as an attacker would forge it."""
    body = {part: document[part] for part in ("block", "carry", "format")}
    return canonical({**document, "hash": hash_of(canonical(body).encode())}).encode() + b"\n"


@pytest.mark.parametrize("where", [(), ("block",), ("block", "event"), ("carry",), "kind"], ids="".join)
def test_a_field_and_an_event_of_the_future_are_refused_by_name(where):
    document = json.loads(LINE)
    if where == "kind":
        document["block"]["event"]["kind"] = "mood"
    else:
        reduce(getitem, where, document)["mood"] = 1
    with pytest.raises(VersionUnreadable, match=r"'block\.event'" if where == "kind" else "mood") as caught:
        unseal(resealed(document), APPLICATION, 3)
    assert caught.value.code == "field-unknown"


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d["block"]["event"].update(newWatermark=None),
        lambda d: d["block"].update(systemTime=d["block"]["systemTime"].replace("Z", "+00:00")),
    ],
    ids=["a null", "a time spelled otherwise"],
)
def test_a_record_has_one_spelling(edit):
    document = json.loads(LINE)
    edit(document)
    assert refused(resealed(document)) == "block-damaged"


def test_an_object_that_is_not_what_its_name_says_is_noticed():
    document = json.loads(LINE)
    name = next(iter(document["objects"]))
    document["objects"][name] += " "
    with pytest.raises(ChainBroken, match="keeps an object"):
        unseal(resealed(document), APPLICATION, 3)
