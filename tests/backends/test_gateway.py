"""The connection of PySpark to Java."""

import sys

import pytest

from tests.processes import run_program

KINDS = """
import sys
import numpy
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter
from dagkit.backends.spark.gateway import find_numpy_without_pandas

find_numpy_without_pandas()
values = numpy.float64(1), numpy.zeros(1), numpy.zeros((1, 1)), 1.0, [1.0], None
print([kind().can_convert(value) for kind in (NumpyScalarConverter, NumpyArrayConverter) for value in values])
print("pandas" in sys.modules)
"""


@pytest.mark.slow
def test_values_of_numpy_are_found_without_pandas():
    ran = run_program([sys.executable, "-c", KINDS], seconds=120)
    scalars, arrays = [True, *[False] * 5], [False, True, *[False] * 4]
    assert ran.stdout.splitlines() == [str(scalars + arrays), "False"]
