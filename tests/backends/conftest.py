"""The backends and machines that tests are run on."""

import pytest

from dagkit.backends.reference import ReferenceBackend
from dagkit.backends.spark import SparkBackend
from dagkit.launching import Machine
from tests.backends.places import SPARK_IN_TRIALS
from tests.backends.slots import InSlots


@pytest.fixture(params=["reference", "slots", SPARK_IN_TRIALS])
def make(request):
    without_spark = {"reference": ReferenceBackend, "slots": InSlots}.get(request.param)
    session = None if without_spark else request.getfixturevalue(request.param)
    return without_spark or (lambda compilation: SparkBackend(compilation, session))


@pytest.fixture(params=["reference", SPARK_IN_TRIALS])
def machine(request):
    return (
        Machine("reference") if request.param == "reference" else Machine(spark=request.getfixturevalue(request.param))
    )
