"""Consumers of a process that forks, as the reference does for each window after a failure. No cluster is needed."""

import os
import signal

from dagkit_operators.kafka.consumers import DEFAULTS, Consumers
from tests.patience import within

SETTINGS = {**DEFAULTS, "bootstrap.servers": "127.0.0.1:1"}
ENDS_AFTER_SECONDS = round(within(30))


def test_a_child_makes_a_consumer_of_its_own_and_releases_none_of_its_parent():
    consumers = Consumers()
    with consumers.at(SETTINGS, "topic", 0, 0, 10):
        pass
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # no handler runs while the library waits
            signal.alarm(ENDS_AFTER_SECONDS)  # the library may wait for ever for threads that do not exist here
            with consumers.at(SETTINGS, "topic", 0, 0, 10):
                pass
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    consumers.close()
