"""The benchmark of Kafka judges rates and latencies by their bounds."""

import pytest

from bench import kafka
from bench.messages.task import Task, task_in


@pytest.mark.parametrize(
    ("ours", "verdict"), [(150.0, "1.50 | at least 1.5 | holds"), (149.0, "1.49 | at least 1.5 | falls short")]
)
def test_a_rate_must_be_large_enough(ours, verdict):
    found = kafka.Found({"dagkit-batch": [1.0, ours, 900.0], "structured": [100.0]}, {})
    assert f"| batch over Structured Streaming | {verdict} |" in kafka.in_words(found, 10, 3)


@pytest.mark.parametrize(
    ("ours", "verdict"), [(50.0, "0.50 | at most 0.5 | holds"), (51.0, "0.51 | at most 0.5 | falls short")]
)
def test_a_latency_must_be_small_enough(ours, verdict):
    found = kafka.Found({}, {"dagkit": [1.0, ours, 900.0], "structured": [100.0, 100.0]})
    assert f"| latency over Structured Streaming | {verdict} |" in kafka.in_words(found, 10, 3)


def test_what_was_not_measured_is_not_judged():
    assert list(kafka.Found({"dagkit-batch": [1.0]}, {"structured": [1.0]}).verdicts()) == []


def test_a_task_is_read_as_it_was_written(tmp_path):
    task = Task("127.0.0.1:9092", "source", "target")
    task.write(tmp_path / "task")
    assert task_in(tmp_path / "task") == task
