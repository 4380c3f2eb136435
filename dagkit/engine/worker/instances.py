"""Create live operators: separate instances with restored state and bound inputs and outputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from dagkit.api.adapters import copied
from dagkit.api.files import output_files
from dagkit.api.keyed import Keyed
from dagkit.api.operators import Operator, batch_handler_of, handler_name, handler_of, sending
from dagkit.api.ports import input_ports
from dagkit.api.state import Declared, KeyedState, declared_state
from dagkit.api.tagged import Unwritable
from dagkit.engine.program.entrances import entrance, note, noting
from dagkit.engine.program.program import Keying
from dagkit.errors import RunFailure, Scene
from dagkit.schema import Bindings, arguments_of_class
from dagkit.schema.batch import Batch
from dagkit.schema.routing import routing_code

SavedState = Mapping[str, JsonValue]
"""The declared state of one operator, by name."""
Take = Callable[[Any], None]

GATHERED_ITEMS = 8192
"""Single items that wait for one call, where an operator takes batches only, or where they go far."""


def _state_unreadable(operator: str, state: str, error: Exception) -> RunFailure:
    """The present class cannot read the saved state."""
    return RunFailure(
        f"{operator}.{state} was saved by another version of the class, and this one cannot read it: {error}",
        "let its type read what was saved, or declare the new state under another name",
        Scene(operator),
        code="state-unreadable",
    )


def _state_unwritable(operator: str, state: str, value: str, declared: str) -> RunFailure:
    """State cannot be saved such that it reads back unchanged."""
    return RunFailure(
        f"{operator}.{state} holds {value}, which cannot be saved as {declared} and read back as it was",
        "declare a type for it that can, as in `State[…]` and `KeyedState[…, …]`: a dataclass, a pydantic model, "
        "an enum, numbers, text, lists of them",
        Scene(operator),
        code="state-unwritable",
    )


@dataclass(frozen=True, slots=True)
class Receiver:
    """Receives the items of one input: one by one, or in batches."""

    item: Take
    batch: Take
    flush: Callable[[], None] | None = None
    """Delivers waiting items; called before the window ends."""
    control: Take | None = None
    """Receives control tuples; if None, they are dropped."""
    passed: Callable[[], int] = int
    """Returns how many items have been delivered, without waiting ones; 0 if they are not counted."""


def live(
    configured: Operator, saved: SavedState, types: Bindings | None = None, *, takes_saved: bool = False
) -> Operator:
    """Return a separate instance with the saved state.

    `types` are those that its type variables stand for, by default the type arguments of its class. `takes_saved`: the
    caller does not use `saved` any more, so the instance may change it instead of a copy.
    """
    operator = configured.configured({})
    operator._types = arguments_of_class(type(configured)) if types is None else types  # noqa: SLF001 - set here only
    restore(operator, saved, takes_saved=takes_saved)
    return operator


def restore(operator: Operator, saved: SavedState, *, takes_saved: bool = False) -> None:
    """Replace the state of an operator by a saved one; `takes_saved` is as in `live`."""
    values = Declared.values_of(operator)
    for name, declared in declared_state(type(operator)).items():
        values.pop(name, None)
        if name in saved:
            # Values of keyed state are copied when they are read: a window touches few of many keys.
            is_copied = not takes_saved and not isinstance(declared, KeyedState)
            mine = copied(saved[name]) if is_copied else saved[name]
            values[name] = _restored(operator, name, declared, mine)


def incomplete_keys(configured: Operator, saved: SavedState) -> Iterator[str]:
    """The keys of the files that slots write together, and that this operator will adopt."""
    given = [files.incomplete for files in output_files(type(configured)).values() if files.incomplete is not None]
    if given:
        operator = live(configured, saved)
        for keys in given:
            yield from keys(operator)


def _restored(operator: Operator, name: str, declared: Declared[Any], value: JsonValue) -> Any:
    try:
        return declared.restored(value, operator._types)  # noqa: SLF001 - `live` set them
    except (ValueError, TypeError) as error:
        raise _state_unreadable(type(operator).__name__, name, error) from error


def saved(operator: Operator, called: str = "") -> SavedState:
    """Return the operator's present state as JSON, without state that was never touched."""
    declared = declared_state(type(operator))
    called = f"{called} ({type(operator).__name__})" if called else type(operator).__name__
    values = Declared.values_of(operator)
    types = operator._types  # noqa: SLF001 - `live` set them
    return {name: _saved(called, name, declared[name], value, types) for name, value in sorted(values.items())}


def _saved(operator: str, name: str, declared: Declared[Any], value: Any, types: Bindings) -> JsonValue:
    try:
        return declared.saved(value, types)
    except Unwritable as error:
        raise _state_unwritable(operator, name, str(error), declared.spelled) from error


def bind_output(operator: Operator, port: str, sinks: Sequence[Receiver]) -> None:
    """Connect an output to these sinks; without sinks it counts as unconnected."""
    if sinks:
        operator._sinks[port] = to_all([sink.item for sink in sinks])  # noqa: SLF001 - outputs are bound here
        operator._batch_sinks[port] = to_all([sink.batch for sink in sinks])  # noqa: SLF001
        controls = [sink.control for sink in sinks if sink.control is not None]
        if controls:
            operator._control_sinks[port] = to_all(controls)  # noqa: SLF001


def to_all(takes: Sequence[Take]) -> Take:
    """Return a function that calls each of several."""
    if len(takes) == 1:
        return takes[0]

    def send(taken: Any) -> None:
        for take in takes:
            take(taken)

    return send


def of_items(take: Take, passed: Callable[[], int] = int) -> Receiver:
    """A receiver that takes the items of batches one by one; the caller provides the counter."""

    def take_each(batch: Batch[Any]) -> None:
        for item in batch.items():
            take(item)

    return Receiver(take, take_each, passed=passed)


def of_batches(take: Take) -> Receiver:
    """A receiver that gathers single items into batches."""
    waiting: list[Any] = []
    count = 0

    def flush() -> None:
        nonlocal count
        if waiting:
            batch = Batch.of(waiting[:])
            count += len(waiting)
            waiting.clear()
            take(batch)

    def wait(item: Any) -> None:
        waiting.append(item)
        if len(waiting) >= GATHERED_ITEMS:
            flush()

    def take_after_those(batch: Batch[Any]) -> None:
        nonlocal count
        flush()
        count += len(batch)
        take(batch)

    return Receiver(wait, take_after_those, flush, passed=lambda: count)


def receiver(operator: Operator, port: str, keying: Keying, name: str = "") -> Receiver:
    """Return the receiver of an input; it passes the routing code of each item to keyed state.

    It notes what the operator's code raises under the operator's `name`, by default that of its class.
    """
    name = name or type(operator).__name__
    keyed = [_keyed(operator, n) for n, kind in declared_state(type(operator)).items() if isinstance(kind, KeyedState)]
    by_batch = batch_handler_of(operator, port)
    if keyed and keying.codec is not None:
        by_batch = None  # only the codec can map a key to a partition, and it needs the item
    if not callable(getattr(operator, handler_name(input_ports(type(operator))[port]), None)):
        assert by_batch is not None, f"{type(operator).__name__} has no method for {port}"
        return of_batches(noting(name, _with_keys(by_batch, keyed)))
    noted = None if by_batch is None else noting(name, _with_keys(by_batch, keyed))
    return _counted(operator, port, noted, keyed, keying, called=name)


def _counted(
    operator: Operator,
    port: str,
    by_batch: Take | None,
    keyed: Sequence[Keyed[Any, Any]],
    keying: Keying,
    *,
    called: str,
) -> Receiver:
    """Return a receiver that counts single items and batches, and notes what fails.

    It counts a single item in the same call that delivers it to the operator's method: a separate call would cost ten
    times as much. The `try` there costs nothing until something is raised.
    """
    name = handler_name(input_ports(type(operator))[port])
    method, send = getattr(operator, name), sending(operator, name)
    uncounted = _with_code(called, handler_of(operator, port), keyed, keying)
    count = 0.0  # exact up to 2**53, and adding to it costs less than adding to an int

    def handle(item: Any) -> None:
        nonlocal count
        count += 1.0
        try:
            made = method(item)
            if made is not None:
                send(made)
        except Exception as error:
            note(error, called, item)
            raise

    def handle_each(batch: Batch[Any]) -> None:
        nonlocal count
        items = batch.items()
        count += len(items)
        for item in items:
            try:
                uncounted(item)
            except Exception as error:
                note(error, called, item)
                raise

    def handle_batch(batch: Batch[Any]) -> None:
        nonlocal count
        count += len(batch)
        assert by_batch is not None, "an input without a batch method gets single items"
        by_batch(batch)

    take_batch = entrance(called, handle_each) if by_batch is None else handle_batch
    take = _with_code(called, entrance(called, handle), keyed, keying)
    return Receiver(take, take_batch, passed=lambda: int(count))


def _with_code(called: str, handle: Take, keyed: Sequence[Keyed[Any, Any]], keying: Keying) -> Take:
    if not keyed:
        return handle

    def take(item: Any) -> None:
        try:
            routed_by = keying.code(item)
        except Exception as error:
            note(error, called, item)
            raise
        for state in keyed:
            state.current_code = routed_by
        handle(item)
        for state in keyed:
            state.current_code = None

    return entrance(called, take)


def _with_keys(handle: Take, keyed: Sequence[Keyed[Any, Any]]) -> Take:
    if not keyed:
        return handle

    def take(batch: Batch[Any]) -> None:
        for state in keyed:
            state.code_of = routing_code  # such state uses the same keys as the routing
        handle(batch)
        for state in keyed:
            state.code_of = None

    return take


def _keyed(operator: Operator, name: str) -> Keyed[Any, Any]:
    state: Keyed[Any, Any] = getattr(operator, name)
    return state
