"""dagkit: streaming applications as checked graphs of typed operators, compiled to fused PySpark stages.

This module exports the names that authors of applications use; `__init__.pyi` lists them. Other packages compile, draw
and run applications. A name's module is imported on first use, so that `dagkit --help` and pytest's plugins start
without all of them.
"""

from collections.abc import Mapping
from typing import Any

from dagkit.ground.deferred_names import deferred, homes_of

_HOMES = homes_of(__name__)
__all__ = [*_HOMES]  # noqa: PLE0604 - names are text

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    found = globals()[name] = deferred(__name__, _HOMES, name)
    _draw_in_notebooks()
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def _draw_in_notebooks() -> None:
    """Let a Dag draw itself: its own layer cannot import what draws, and importing dagkit must not load that."""
    from dagkit.api.dag import Dag  # noqa: PLC0415 - with the first name, which needs it, too

    def drawn(dag: Dag) -> Mapping[str, str]:
        from dagkit.render.formats import mimebundle  # noqa: PLC0415 - as above

        return mimebundle(dag)

    Dag.drawing = staticmethod(drawn)
