"""Live operators: instances of their own, whose state is restored and whose inputs and outputs are bound."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from dagkit.api.operators import Operator, handler_of
from dagkit.api.state import Keyed, KeyedState, declared_state, kept_by

SavedState = Mapping[str, JsonValue]
"""The declared state of one operator, by name."""
Take = Callable[[Any], None]


def live(configured: Operator, saved: SavedState) -> Operator:
    """An instance of its own, with the state that was saved."""
    operator = configured.configured({})
    declared = declared_state(type(operator))
    for name, value in saved.items():
        kept_by(operator)[name] = declared[name].restored(value)
    return operator


def saved(operator: Operator) -> SavedState:
    """The state that the operator has now, as JSON; what was never touched is left out."""
    declared = declared_state(type(operator))
    return {name: declared[name].saved(value) for name, value in sorted(kept_by(operator).items())}


def bind_output(operator: Operator, port: str, sinks: Sequence[Take]) -> None:
    """Let an output send to these sinks from now on; to none, and it counts as unconnected."""
    if sinks:
        operator._sinks[port] = sinks[0] if len(sinks) == 1 else _to_all(sinks)  # noqa: SLF001 - outputs are bound here


def _to_all(sinks: Sequence[Take]) -> Take:
    def send(item: Any) -> None:
        for sink in sinks:
            sink(item)

    return send


def taking(operator: Operator, port: str, code: Callable[[Any], int]) -> Take:
    """What takes an item at an input; keyed state learns by what the item is routed."""
    handle = handler_of(operator, port)
    keyed = [_keyed(operator, n) for n, kind in declared_state(type(operator)).items() if isinstance(kind, KeyedState)]
    if not keyed:
        return handle

    def take(item: Any) -> None:
        routed_by = code(item)
        for state in keyed:
            state.current_code = routed_by
        handle(item)
        for state in keyed:
            state.current_code = None

    return take


def _keyed(operator: Operator, name: str) -> Keyed[Any, Any]:
    state: Keyed[Any, Any] = getattr(operator, name)
    return state
