"""Overlays equal the dicts that the same changes make, and report how they differ from earlier ones."""

import json
import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dagkit.engine.program.differences import applied, difference
from dagkit.ground.overlays import Overlay

NAMES = st.sampled_from("abcdefgh")
CHANGES = st.lists(st.tuples(st.sets(NAMES, max_size=3), st.dictionaries(NAMES, st.integers(0, 3), max_size=4)))


@given(st.dictionaries(NAMES, st.integers(0, 3)), CHANGES)
def test_an_overlay_equals_the_dict_that_was_changed_in_place_also_in_order(first, steps):
    overlay, expected = Overlay.of(first), dict(first)
    for gone, entries in steps:
        before, was = overlay, dict(expected)
        for name in gone:
            expected.pop(name, None)
        expected |= entries
        overlay = overlay.changed(gone, entries)
        assert list(overlay.items()) == list(expected.items())
        assert (len(overlay), list(overlay)) == (len(expected), list(expected))
        assert {name: name in overlay for name in "abcdefgh"} == {name: name in expected for name in "abcdefgh"}
        assert list(before.items()) == list(was.items())
        change = difference(before, overlay)
        assert list((was if change is None else applied(was, change)).items()) == list(expected.items())
    copied = pickle.loads(pickle.dumps(overlay))  # noqa: S301 - made here
    assert (copied, list(copied)) == (expected, list(expected))


@given(st.dictionaries(NAMES, st.integers(0, 3)), CHANGES)
def test_a_change_is_applied_to_an_overlay_as_to_a_dict(first, steps):
    overlay: Any = Overlay.of(first)
    for gone, entries in steps:
        change = {"-": list(gone), "*": {name: {"=": value} for name, value in entries.items()}}
        overlay, first = applied(overlay, change), applied(first, change)
        assert isinstance(overlay, Overlay)
        assert list(overlay.items()) == list(first.items())


def test_a_change_costs_what_changed_and_layers_stay_few():
    entries = {f"{number:06}": number for number in range(5000)}
    overlay = Overlay.of(entries)
    for number in range(400):
        before = overlay
        overlay = overlay.changed((), {f"{number * 7 % 5000:06}": -number})
        assert difference(before, overlay) == {"*": {f"{number * 7 % 5000:06}": {"=": -number}}}
        assert overlay.layers[0].set is entries
        assert len(overlay.layers) <= 12
    assert json.dumps(overlay.whole()) == json.dumps(entries | {f"{n * 7 % 5000:06}": -n for n in range(400)})
