"""The benchmark of gzip files measures what it says, and fails if a ratio is too small."""

from dataclasses import replace

import pytest

from bench.compression import LEAST_FIRST, LEAST_SECOND, Result, holds, measured, page

MET = Result(400, 350, 700, LEAST_FIRST, LEAST_SECOND, 1.65, 3)


def test_both_ratios_are_judged():
    assert holds(MET)
    assert not holds(replace(MET, first_ratio=LEAST_FIRST - 0.01))
    assert not holds(replace(MET, second_ratio=LEAST_SECOND - 0.01))


def test_the_page_has_a_row_for_each_reading():
    rows = [[cell.strip() for cell in line.split("|")[2:-1]] for line in page(MET, 64 << 20).splitlines()]
    assert "was 1.65 times as fast" in page(MET, 64 << 20)
    assert rows[-3:] == [["400", "", "", "3"], ["350", "0.80", "0.8", "3"], ["700", "1.70", "1.7", "3"]]


@pytest.mark.trial
@pytest.mark.slow
def test_each_line_is_read_once_by_one_and_by_two(tmp_path):
    result = measured(tmp_path, 40 << 20, rounds=1)
    assert result.rounds == 1
    assert min(result.igzip_mb_per_second, result.first_mb_per_second, result.second_mb_per_second) > 0
    assert result.second_ratio_of_elapsed > 0
