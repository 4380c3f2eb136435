"""The mark of a running launch shows the next one whether it was killed."""

from dagkit.engine.record.status_file import LaunchMarker
from dagkit.ledger.stores.memory import MemoryStore


def begun(store: MemoryStore) -> LaunchMarker:
    marker = LaunchMarker(store)
    marker.begin()
    return marker


def test_a_launch_after_one_that_ended_was_not_killed():
    store = MemoryStore()
    begun(store).end()
    assert not begun(store).was_killed


def test_a_killed_launch_is_known_also_after_a_launch_that_failed_before_it_began():
    store = MemoryStore()
    begun(store)
    LaunchMarker(store).end()
    assert begun(store).was_killed
