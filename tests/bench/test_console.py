"""The console is judged by how soon its page is shown, and by what an open page costs."""

import pytest

from bench.console import Measured, page


@pytest.mark.parametrize(("shown", "beside", "holds"), [(1.0, 10.2, True), (1.1, 10.0, False), (0.2, 10.3, False)])
def test_a_page_is_shown_within_a_second_and_costs_two_percent(shown, beside, holds):
    measured = Measured(100_000, [9.0, shown, 0.1], [0.1], 8, [10.0, 9.0, 11.0], [beside])
    assert measured.holds is holds
    assert f"| until the page shows the run | {shown:.2f} (0.10 to 9.00) |" in page(measured)
    assert f"{1 - 10 / beside:.1%} of the throughput; at most 2% is wanted" in page(measured)
