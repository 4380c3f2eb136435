"""Classes that moved to another module are recorded under the first one, and found under both."""

import importlib

import pytest

from dagkit.conf.values.classes import find_class
from dagkit.ground.moved_classes import _MOVED, recorded_module
from dagkit.plan.portable import portable

MOVED = [(now, name, before) for now, classes in _MOVED.items() for name, before in classes.items()]


@pytest.mark.parametrize(("now", "name", "before"), MOVED, ids=[name for _, name, _ in MOVED])
def test_a_moved_class_is_recorded_under_its_first_module_and_found_under_both(now, name, before):
    cls = getattr(importlib.import_module(now), name)
    assert portable(cls) == {"$class": f"{before}.{name}"}
    assert {find_class(f"{module}:{name}", is_called=False) for module in (now, before)} == {cls}


def test_other_classes_are_recorded_under_their_own_module():
    assert recorded_module("app", "Watch") == "app"
