"""A launch in a warm driver is compared with its windows alone, a cold one with a script of PySpark."""

import pytest

from bench.launches import COLD, SCRIPT, WARM, WINDOWS, Measured, page


@pytest.mark.parametrize(("warm", "holds"), [(0.75, True), (0.76, False)])
def test_a_launch_in_a_warm_driver_takes_half_a_second_over_its_windows(warm, holds):
    measured = Measured(1, {COLD: [4.0], WARM: [9.0, warm, 0.1], WINDOWS: [0.25], SCRIPT: [5.0]})
    assert measured.holds is holds
    assert f"over the windows alone: {warm - 0.25:.2f} s" in page(measured)
    assert f"| in a warm driver | {warm} | 0.10 to 9.00 |" in page(measured)


@pytest.mark.parametrize(("cold", "holds"), [(4.0, True), (4.1, False)])
def test_a_cold_launch_takes_four_fifths_of_a_script_of_pyspark(cold, holds):
    measured = Measured(1, {COLD: [9.0, cold, 0.1], WARM: [0.5], WINDOWS: [0.25], SCRIPT: [6.0, 5.0, 4.0]})
    assert measured.holds is holds
    assert f"over the script: {cold / 5:.2f}; at most 0.8" in page(measured)
