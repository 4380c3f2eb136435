"""The examples of the document about splittable functions run here, line by line."""

import pytest

from dagkit import InputPort, OutputPort, SplittableOperator
from dagkit.ranges import WorkUnclaimed
from dagkit.testing import Alone, check_every_split_of


class CountFn(SplittableOperator[tuple[str, int]]):
    """The "Hello World" of splittable functions."""

    kind = "documents.count/1"
    pairs = InputPort[tuple[str, int]]()
    counted = OutputPort[tuple[str, int]]()

    def process(self, element, tracker):
        for i in range(*tracker.current_restriction()):
            if not tracker.try_claim(i):
                return
            yield element[0], i

    def initial_restriction(self, element):
        return (0, element[1])


def test_count_fn_makes_each_pair_once_however_it_is_split():
    count = Alone(CountFn())
    count.work(("x", 5))
    assert count.sent() == [("x", number) for number in range(5)]
    check_every_split_of(CountFn(), ("x", 7))


class EndsWithItsBlocks(CountFn):
    """Returns when there are no more records, as the reader in the document does."""

    kind = "documents.ends-with-its-blocks/1"

    def process(self, element, tracker):
        for number in range(0, element[1], 2):
            if not tracker.try_claim(number):
                return
            yield element[0], number


def test_the_failure_of_a_function_that_returns_before_the_end_of_its_range_says_to_claim_the_end():
    with pytest.raises(WorkUnclaimed, match=r"\[3, 4\) was never claimed") as raised:
        Alone(EndsWithItsBlocks()).work(("x", 4))
    assert "also the end, tracker.current_restriction().stop, once there are no more records" in raised.value.help
