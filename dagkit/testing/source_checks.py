"""Checks that an input operator keeps its contract: what it found is found once, whenever the driver is restarted."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count, pairwise
from typing import Any

from dagkit.api.external import Unavailable
from dagkit.api.operators import InputOperator
from dagkit.api.ports import input_ports, output_ports
from dagkit.api.work import Sourced, SplittableOperator, is_sourced, work_port
from dagkit.engine.program.codec import ItemUnwritable, JsonCodec
from dagkit.engine.worker.instances import restore
from dagkit.schema import arguments_of_class, bind, substitute
from dagkit.testing.alone import Alone
from dagkit.testing.crashes import FakeClock
from dagkit.testing.operator_checks import ContractBroken, until_answered
from dagkit.testing.work_checks import check_every_split_of

DAY = 24 * 60 * 60
"""The seconds between two looks: a source that scans at intervals scans in each of them."""
Change = Callable[[], object]


def check_source(
    source: InputOperator,
    reader: SplittableOperator[Any] | None = None,
    *,
    changes: Sequence[Change] = (),
    **given: Any,
) -> list[Any]:
    """Check that a source finds everything once, and return what it found. Raise ContractBroken or SplitsBroken.

    The source looks once, further while it holds the launch, and again a day after each of the `changes`, such as a new
    file. A second one is restored from its declared state before each look; a third one repeats each look, as after a
    crash before the look was recorded. All three must find the same, in a form that the ledger can store. A look that
    raises `Unavailable` is tried again at once. Elements with positions, such as blocks, must have numbers of their own
    and cover each source without a gap or an overlap. A `reader` must read the longest element equally however it is
    split. Further arguments are those of `Alone`.
    """
    name = type(source).__name__
    clock = FakeClock()
    given = {"now": clock.now} | given
    steady, moved = Alone(source, **given), Alone(source, **given)
    found: list[Any] = []
    for number in _looks(steady, changes):
        clock.advance(seconds=DAY)
        # Both have the state of the same one, which is torn down by that and may not look again.
        lost, moved = moved.restarted(), moved.restarted()
        for alone in (steady, lost, moved):
            until_answered(name, partial(_look, alone))
        seen, repeated, restored = _found(steady), _found(lost), _found(moved)
        # Only to tear it down: its state counts as lost.
        lost.restarted()
        if seen != restored:
            help_ = "declare what it remembers as State"
            raise ContractBroken(f"{name}, restored before look {number}: {_differ(seen, restored)}; {help_}")
        if restored != repeated:
            help_ = "a look may depend on nothing but the state and the input"
            raise ContractBroken(f"{name}, look {number} repeated: {_differ(restored, repeated)}; {help_}")
        found += [item for _, item in seen]
        for port, item in seen:
            _check_stored(source, port, item)
    if not found:
        raise ContractBroken(f"{name} found nothing, so nothing can be proven of it")
    _check_covered(name, [element for element in found if is_sourced(element)])
    if reader is not None:
        _check_read(name, reader, found)
    return found


def _looks(steady: Alone[InputOperator], changes: Iterable[Change]) -> Iterator[int]:
    """The numbers of the looks. Each change follows when the source no longer holds the launch."""
    numbers = count(1)
    for change in (lambda: None, *changes):
        change()
        yield next(numbers)
        while steady.operator.holds_launch:
            yield next(numbers)


def _look(alone: Alone[InputOperator]) -> None:
    """Look, or undo a look whose source does not answer, and raise Unavailable."""
    before = alone.state
    try:
        alone.look()
    except Unavailable:
        restore(alone.operator, before)
        _found(alone)
        raise


def _found(alone: Alone[InputOperator]) -> list[tuple[str, Any]]:
    return [(port, item) for port in alone.outputs for item in alone.sent(port)]


def _differ(expected: Sequence[Any], found: Sequence[Any]) -> str:
    return f"it found {[item for _, item in found]!r:.200} instead of {[item for _, item in expected]!r:.200}"


def _check_stored(source: InputOperator, port: str, item: Any) -> None:
    """Raise unless the ledger can store the item: a later launch reads it from there."""
    declared, bindings = output_ports(type(source))[port].payload, arguments_of_class(type(source))
    sent = source.sent_payload(port, {})
    if sent is not None:
        bind(declared, sent, bindings)
    try:
        JsonCodec(f"{type(source).__name__}.{port}", substitute(declared, bindings)).of(item)
    except ItemUnwritable as error:
        raise ContractBroken(str(error)) from error


def _check_covered(name: str, elements: Iterable[Sourced]) -> None:
    """Raise unless the elements have different numbers and divide each source."""
    numbers: set[int] = set()
    by_source: dict[str, list[Sourced]] = defaultdict(list)
    for element in elements:
        if element.number in numbers:
            raise ContractBroken(f"{name} gave two elements the number {element.number}: {element.place(None)}")
        numbers.add(element.number)
        by_source[element.source].append(element)
    for place, parts in by_source.items():
        parts.sort(key=lambda part: part.start)
        for one, other in pairwise(parts):
            if one.end != other.start:
                what = "is read twice" if one.end > other.start else "is not read"
                between = f"[{min(one.end, other.start)}, {max(one.end, other.start)})"
                raise ContractBroken(f"{name} divides {place} wrongly: {between} {what}")
        size = parts[-1].source_size
        if size is not None and (parts[0].start, parts[-1].end) != (0, size):
            reach = f"[{parts[0].start}, {parts[-1].end})"
            raise ContractBroken(f"{name} divides {place} wrongly: its elements cover {reach} of [0, {size})")


def _check_read(name: str, reader: SplittableOperator[Any], found: Sequence[Any]) -> None:
    payload = input_ports(type(reader))[work_port(reader)].payload
    elements = [element for element in found if not isinstance(payload, type) or isinstance(element, payload)]
    if not elements:
        raise ContractBroken(f"{name} found no element that {type(reader).__name__} reads")
    check_every_split_of(reader, max(elements, key=lambda one: one.end - one.start if is_sourced(one) else 0))
