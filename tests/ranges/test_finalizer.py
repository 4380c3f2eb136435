"""What is done after the commit is done once, whatever it raises."""

import copy
import logging
from threading import Barrier, Thread

import pytest

from dagkit.ranges import BundleFinalizer
from tests.patience import join, within


@pytest.fixture
def finalizer():
    return BundleFinalizer()


def test_callbacks_are_called_in_order_and_once_and_a_copy_has_its_own(finalizer):
    acknowledged = []
    for offset in (10, 20):
        finalizer.register(lambda offset=offset: acknowledged.append(offset))
    copy.copy(finalizer).finalize()
    assert acknowledged == []
    assert [finalizer.finalize(), finalizer.finalize()] == [0, 0]
    assert acknowledged == [10, 20]


def test_one_that_fails_is_logged_and_does_not_keep_the_others(finalizer, caplog):
    acknowledged = []

    def acknowledge():
        raise ConnectionError("the bus is gone")

    finalizer.register(acknowledge)
    finalizer.register(lambda: acknowledged.append(20))
    with caplog.at_level(logging.ERROR):
        assert finalizer.finalize() == 1
    assert acknowledged == [20]
    assert "acknowledge" in caplog.text
    assert "the bus is gone" in caplog.text


def test_one_may_register_for_the_next_commit(finalizer):
    acknowledged = []
    finalizer.register(lambda: finalizer.register(lambda: acknowledged.append(2)))
    finalizer.finalize()
    assert acknowledged == []
    finalizer.finalize()
    assert acknowledged == [2]


def test_two_that_finalize_at_once_call_each_callback_once(finalizer):
    acknowledged, start = [], Barrier(4)
    for offset in range(200):
        finalizer.register(lambda offset=offset: acknowledged.append(offset))

    def finalize():
        start.wait(within(30))
        finalizer.finalize()

    threads = [Thread(target=finalize) for _ in range(4)]
    for thread in threads:
        thread.start()
    join(*threads)
    assert sorted(acknowledged) == list(range(200))
