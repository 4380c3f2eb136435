"""What `dagkit` offers by name, and the catalogue of attributes, whose table is in `docs/coming-from-apex.md`."""

import sys
import types

import dagkit
from dagkit.api.attributes import BY_SCOPE, DagContext, OperatorContext, PortContext, attribute_names
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


def test_every_simple_name_is_listed_once_and_an_attribute_is_known_by_its_scope_too():
    assert sorted(attribute_names()) == sorted({name for attributes in BY_SCOPE.values() for name in attributes})
    assert DagContext.STREAMING_WINDOW_SIZE_MILLIS.qualified == "DAGContext.STREAMING_WINDOW_SIZE_MILLIS"
    assert PortContext.PARTITION_PARALLEL.qualified == "PortContext.PARTITION_PARALLEL"
    assert DagContext.CHECKPOINT_WINDOW_COUNT is not OperatorContext.CHECKPOINT_WINDOW_COUNT
