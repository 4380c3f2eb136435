"""`dagkit tap`: items of a running application, and nothing of one that does not run."""

import json
import threading

import pytest

from tests.cli.operating.test_operating import Running, until_stopped
from tests.patience import join, within

pytestmark = pytest.mark.slow


@pytest.fixture
def running(tmp_path):
    """An application that sends a number each second, for longer than any test takes."""
    yield from until_stopped(Running(tmp_path / "app", [(number,) for number in range(3600)]))


def test_items_are_shown_until_the_limit_and_none_of_an_application_that_does_not_run(dagkit, running):
    place = str(running.folder)
    answer = dagkit("tap", place, "script", "--limit", "1")
    assert (answer.code, answer.err, answer.out[:7]) == (0, "", "window ")
    assert answer.out.rstrip().partition(": ")[2].isdecimal()
    document = json.loads(dagkit("tap", place, "times", "--limit", "1", "--json").out)
    assert document["window"] > 0
    assert [one["operator"] for one in document["items"]] == ["times"]
    dagkit("tap", place, "tims").fails(3, "there is no stream 'tims' [request-refused]")
    dagkit("stop", place)
    running.thread.join(within(30))
    assert dagkit("tap", place, "times").code == 8


@pytest.mark.trial
def test_items_are_shown_until_the_application_ends(dagkit, running):
    stopping = threading.Timer(2, running.stop)
    stopping.start()
    answer = dagkit("tap", str(running.folder), "times")
    join(stopping, seconds=50)
    assert (answer.code, answer.err) == (0, "the application has ended\n")
    assert answer.out.startswith("window ")
