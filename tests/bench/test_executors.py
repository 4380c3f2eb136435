"""Executors are compared by the medians of their runs."""

import pytest

from bench import executors

FOUND = {"computing": {1: [10.0, 11.0, 30.0], 2: [5.5, 5.0, 9.0]}, "waiting": {1: [8.0], 2: [4.5], 4: [2.5]}}


def test_the_page_shows_each_number_of_executors_beside_one():
    text = "\n".join(executors.page(FOUND, 10, 3))
    assert "| computing | 2 | 5.50 (5.00 to 9.00) | 2.00 | 1.8 |" in text
    assert "| waiting | 4 | 2.50 (2.50 to 2.50) | 3.20 |  |" in text
    assert executors.speed(FOUND["waiting"], 2) == pytest.approx(8 / 4.5)


@pytest.mark.parametrize("line", ["computing 3 000001", "waiting 0.0001 000001"])
def test_each_line_is_one_result(line):
    assert executors.work(line).endswith("000001")
