"""Coverage, compared position by position."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dagkit.ranges.coverage import Bounds, surplus

stretches = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)).map(lambda each: (each[0], each[0] + each[1])))


def counted(given: list[Bounds]) -> Counter[int]:
    return Counter(position for start, end in given for position in range(int(start), int(end)))


@given(one=stretches, other=stretches)
def test_a_surplus_covers_what_one_covers_more_often(one, other):
    assert counted(surplus(one, other)) == counted(one) - counted(other)


@given(one=stretches, other=stretches)
def test_equal_coverage_is_written_equally(one, other):
    assert (surplus(one) == surplus(other)) == (counted(one) == counted(other))
