"""The names of the operator library: each is imported from its module on first use."""

import sys
from importlib import import_module

import pytest

import dagkit
import dagkit.testing
import dagkit_operators
from tests.processes import run_program


@pytest.mark.parametrize("package", [dagkit, dagkit.testing, dagkit_operators])
def test_each_listed_name_is_what_its_module_defines(package):
    assert len(package.__all__) > 10
    for name, home in package._HOMES.items():
        assert getattr(package, name) is getattr(import_module(home), name)


def test_an_unknown_name_is_refused():
    with pytest.raises(ImportError, match="cannot import name 'Nothing' from 'dagkit_operators'"):
        from dagkit_operators import Nothing  # noqa: F401, PLC0415


@pytest.mark.slow
def test_an_application_imports_only_the_rooms_that_it_uses():
    code = "import sys; from dagkit_operators import Filter, LineReader; print(*sys.modules)"
    loaded = run_program([sys.executable, "-c", code]).stdout.split()
    assert "dagkit_operators.reading.readers" in loaded
    rooms = {name.split(".")[1] for name in loaded if name.startswith("dagkit_operators.")}
    assert not rooms & {"dataframes", "event_time", "kafka", "queues", "sql", "tables"}
