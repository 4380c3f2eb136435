"""Whatever an input looks like, and wherever drivers are killed: it is known what came of every record, once.

The gate draws the same 200 inputs each time, and trials eight times as many others, of which they print the smallest
input that fails.
"""

import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagkit.backends.spark import SparkBackend
from tests.engine.cast import Hurried, reference, slots
from tests.examples import examples
from tests.faults.messy import WAYS, files, messages, offsets

backends = st.sampled_from((reference, slots, Hurried))


def check(case, backend):
    """Let an application read an input to its end, and compare what came of it with what was made."""
    with tempfile.TemporaryDirectory() as folder:
        made = case.input(Path(folder))
        made.run(backend)
        outcome, outcomes = made.outcome(), list(made.book.outcomes())
        nearest = min(outcomes, key=lambda possible: sum(_apart(outcome, possible)))
        assert (outcome - nearest, nearest - outcome) == (Counter(), Counter()), "doubled or invented, and lost"
        assert made.desk().faults() == []


def _apart(one, other):
    return ((one - other) + (other - one)).values()


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=examples(140))
@given(data=st.data(), backend=backends)
def test_every_record_of_messy_files_is_accounted_for(way, data, backend):
    check(data.draw(files(way)), backend)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(messages, backends)
def test_every_message_of_a_messy_queue_is_accounted_for(case, backend):
    check(case, backend)


@pytest.mark.slow
@settings(max_examples=examples(180))
@given(offsets, backends)
def test_every_offset_of_a_range_is_accounted_for_though_parts_are_removed(case, backend):
    check(case, backend)


@pytest.mark.trial
@settings(max_examples=examples(15), suppress_health_check=list(HealthCheck))
@given(case=st.sampled_from(WAYS).flatmap(files) | messages | offsets)
def test_every_record_of_a_messy_input_is_accounted_for_on_spark(spark, case):
    check(case, partial(on_spark, spark))


def on_spark(session, backend):
    """A backend of a desk that runs on Spark instead."""
    return SparkBackend(backend.compilation, session)
