"""Requests to see items that pass on a stream are answered by the next window, without a trace in its results."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dagkit.engine.parts.requests import Reply, TapStream, ask, reply_to
from dagkit.engine.parts.taps import LASTS
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from tests.backends.places import CONNECT_IN_TRIALS, SPARK
from tests.engine.cast import Collect, Script, chain, lines_through_filter
from tests.engine.parts.test_requests import Times, multiplied
from tests.old_files import aged


def tapped(
    home: Path, draw: Callable[..., None], machine: Machine, behind: timedelta = timedelta(), **tap: Any
) -> Reply | None:
    store = Ledger.create(home / "app").store
    request = ask(store, TapStream(**{"most": 2, "every": 1, **tap}), datetime.now(UTC) - behind)
    launch(draw, until="once", path=home / "app", durable=False, machine=machine)
    return reply_to(store, request)


on_all = pytest.mark.parametrize("machine", ["reference", SPARK, CONNECT_IN_TRIALS], indirect=True)


@on_all
@pytest.mark.parametrize("fused", [True, False])
def test_the_first_lines_are_shown_with_their_places(tmp_path, machine, fused):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a").write_text("one\ntwo\nthree\nfour\nfive\n")
    aged(tmp_path / "in/a")
    draw = lines_through_filter(tmp_path, block_size=1024, fused=fused)
    reply = tapped(tmp_path, draw, machine, stream="lines", every=2)
    assert [(one.operator, one.place.rpartition("/")[2]) for one in reply.items] == [
        ("reader", "a, byte 0 (block 0)"),
        ("reader", "a, byte 8 (block 0)"),
    ]
    assert ["one" in reply.items[0].item, "three" in reply.items[1].item] == [True, True]


@on_all
def test_two_requests_for_one_stream_are_answered_by_the_same_window(tmp_path, machine):
    store = Ledger.create(tmp_path / "app").store
    asked = [ask(store, TapStream(stream="times", most=most, every=1), datetime.now(UTC)) for most in (1, 2)]
    launch(multiplied(looks=((1, 2, 3),)), until="once", path=tmp_path / "app", durable=False, machine=machine)
    replies = [reply_to(store, request) for request in asked]
    assert [(reply.window, len(reply.items)) for reply in replies] == [(1, 1), (1, 2)]


@on_all
def test_what_an_input_operator_sends_is_shown(tmp_path, machine):
    reply = tapped(tmp_path, multiplied(looks=((1, 2, 3), (4,))), machine, stream="script.out")
    assert (reply.window, [one.item for one in reply.items]) == (1, ["1", "2"])


def test_a_stream_without_items_is_answered_by_the_first_window_that_has_some(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a").write_text("#\n" * 64 + "seven\n")
    aged(tmp_path / "in/a")
    draw = lines_through_filter(tmp_path, block_size=64, readers=1, threshold=1)
    reply = tapped(tmp_path, draw, Machine("reference"), stream="kept")
    assert (reply.window, ["seven" in one.item for one in reply.items]) == (3, [True])


def test_an_unknown_stream_is_refused_with_a_near_name(tmp_path):
    reply = tapped(tmp_path, multiplied(), Machine("reference"), stream="tims")
    assert reply.refused == "there is no stream 'tims'\n  help: did you mean 'times'?"


@pytest.mark.parametrize("behind", [LASTS * 2, -LASTS * 2])
def test_a_request_is_answered_whatever_the_clock_of_its_requester_shows(tmp_path, behind):
    draw = multiplied(looks=((1, 2, 3),))
    assert tapped(tmp_path, draw, Machine("reference"), behind, stream="script.out").window == 1


def test_secrets_are_masked(tmp_path):
    draw = chain(script=Script(looks=((4711,),)), times=Times(password=str(4711)), collect=Collect())
    assert "4711" not in tapped(tmp_path, draw, Machine("reference"), stream="times").items[0].item
