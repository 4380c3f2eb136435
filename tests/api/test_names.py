"""What `dagkit` offers by name."""

import sys
import types

import dagkit
from tests.processes import run_program


def test_all_public_names_are_offered_and_no_others_in_alphabetical_order_and_once():
    for name in dagkit.__all__:
        assert getattr(dagkit, name) is not None
    public = {
        n for n, value in vars(dagkit).items() if not n.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert list(dagkit.__all__) == sorted(public - {"Any", "Mapping", "deferred", "homes_of"})


def test_importing_dagkit_imports_none_of_its_names():
    program = "import dagkit, sys; print([n for n in sys.modules if n.startswith(('dagkit.api', 'pydantic'))])"
    assert run_program([sys.executable, "-c", program]).stdout == "[]\n"
