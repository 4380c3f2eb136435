"""A promise says its own hash: what was promised comes back just so, or not at all."""

import pytest

from tests.ledger.desk import Desk, brings_input, code_of

DEEP = 100_000


def promised(desk: Desk) -> str:
    """Where a promise lies."""
    desk.discover((20, 30))
    desk.app.promise(desk.app.plan_next(), {"slots": [[20, 30]]})
    folder = f"{desk.app.log.folder}/planned"
    return f"{folder}/{desk.store.names(folder)[0]}"


def test_every_flipped_bit_of_a_promise_is_noticed(desk):
    key = promised(desk)
    whole = desk.store.get(key)
    for place in range(len(whole)):
        forged = bytearray(whole)
        forged[place] ^= 1
        desk.store.replace(key, bytes(forged))
        assert code_of(desk.reopened().app.plan_next) in ("promise-damaged", "version-unreadable")
    for altered in (whole.replace(b"[[20,30]]", b"[[20,31]]"), whole.replace(b",", b", ", 1)):
        desk.store.replace(key, altered)
        assert code_of(desk.reopened().app.plan_next) == "promise-damaged"
    desk.store.delete([key])
    assert brings_input(desk.reopened().app.plan_next()), "it is planned again, and nothing is lost"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"[" * DEEP, b'{"format": NaN}'], ids=lambda c: c[:9])
def test_a_promise_that_is_none_is_named(desk, content):
    desk.store.replace(promised(desk), content)
    assert code_of(desk.reopened().app.plan_next) == "promise-damaged"
