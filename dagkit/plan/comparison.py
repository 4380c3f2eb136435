"""The differences between two plans, as sentences."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from dagkit.errors import clipped
from dagkit.plan.fingerprint import canonical, fingerprint
from dagkit.plan.model import Plan, PlannedOperator, PlannedStream, PlannedUnifier, Stage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: its subject, and a sentence."""

    kind: Literal["application", "operator", "stream", "partitions", "stage"]
    subject: str
    text: str
    is_routing: bool = False
    """Whether only the routes or unifiers of a stream differ."""

    def __str__(self) -> str:
        return self.text

    @property
    def follows(self) -> bool:
        """Whether the compiler derives the difference from others."""
        return self.is_routing or self.kind in ("partitions", "stage")


def diff(old: Plan, new: Plan) -> list[Change]:
    """Every difference that matters to a run. Empty if and only if the fingerprints are equal."""
    changes = list(_changes(old, new))
    if not changes and fingerprint(old) != fingerprint(new):
        text = "operators, streams or stages are in another order, or stages have other names"
        changes.append(Change("application", new.application, text))
    return changes


def _changes(old: Plan, new: Plan) -> Iterator[Change]:
    if old.application != new.application:
        yield Change("application", new.application, f"application {old.application} is now called {new.application}")
    for text in _values_changed("attribute", old.attributes, new.attributes):
        yield Change("application", new.application, f"application: {text}")
    renamed = _renamed(old, new)
    yield from _operators_changed(old, new, renamed)
    yield from _streams_changed(old, new, renamed)
    yield from _stages_changed(old, new)


_Carried = frozenset[tuple[str, str, str, str]]
"""Changes of payloads that streams report: each with an operator and a port, and the payloads before and after."""


def _operators_changed(old: Plan, new: Plan, renamed: Mapping[str, str]) -> Iterator[Change]:
    carried, names_before = _carried(old, new), {now: was for was, now in renamed.items()}
    for name in _gone(old.by_name, new.by_name):
        if name not in renamed:
            yield Change("operator", name, f"operator {name} is gone")
    for name in _come(old.by_name, new.by_name):
        before = names_before.get(name)
        if before is None:
            yield Change("operator", name, f"operator {name} is new ({new.by_name[name].kind})")
        else:
            yield Change("operator", name, f"operator {before} is now called {name}")
            yield from _operator_changed(old.by_name[before], new.by_name[name], carried)
    for name in _both(old.by_name, new.by_name):
        yield from _operator_changed(old.by_name[name], new.by_name[name], carried)


def _carried(old: Plan, new: Plan) -> _Carried:
    before = {stream.name: stream.payload for stream in old.streams}
    return frozenset(
        (end.operator, end.port, before[stream.name], stream.payload)
        for stream in new.streams
        if stream.name in before
        for end in (stream.source, *stream.sinks)
    )


def _renamed(old: Plan, new: Plan) -> dict[str, str]:
    """Old names to new ones, for each removed operator that equals exactly one added operator in all but its name."""
    gone = [old.by_name[name] for name in _gone(old.by_name, new.by_name)]
    come = [new.by_name[name] for name in _come(old.by_name, new.by_name)]
    renamed: dict[str, str] = {}
    for was in gone:
        alike = [now for now in come if _essence(now) == _essence(was)]
        if len(alike) == 1 and sum(_essence(other) == _essence(was) for other in gone) == 1:
            renamed[was.name] = alike[0].name
    return renamed


def _essence(operator: PlannedOperator) -> tuple[Any, ...]:
    return operator.kind, operator.properties, [(port.name, port.connected) for port in operator.ports]


def _operator_changed(old: PlannedOperator, new: PlannedOperator, carried: _Carried) -> Iterator[Change]:
    def changed(text: str) -> Change:
        return Change("operator", new.name, f"operator {new.name}: {text}")

    if old.kind != new.kind:
        yield changed(f"kind {old.kind} becomes {new.kind}")
    elif old.class_ != new.class_:  # another kind is another class
        yield changed(f"class {old.class_} becomes {new.class_}")
    if old.role is not new.role:
        yield changed(f"role {old.role} becomes {new.role}")
    yield from map(changed, _values_changed("property", old.properties, new.properties))
    yield from map(changed, _values_changed("attribute", old.attributes, new.attributes))
    mirrored = ""
    if old.parallel_with != new.parallel_with:
        mirrored = f"mirrors {new.parallel_with}" if new.parallel_with else f"no longer mirrors {old.parallel_with}"
    is_explained = bool(mirrored) and _was_made_parallel(old, new)  # then the sentence on the attribute reports it
    yield from map(changed, _ports_changed(old, new, f", so it {mirrored}" if is_explained else "", carried))
    if old.count != new.count:
        why = "" if is_explained and new.why.source == "parallel" else f" ({new.why.text})"
        yield Change("partitions", new.name, f"{new.name} runs as {new.count} instead of {old.count}{why}")
    else:
        yield from _partitions_changed(old, new)
    if mirrored and not is_explained:
        yield Change("partitions", new.name, f"{new.name} {mirrored}")


def _partitions_changed(old: PlannedOperator, new: PlannedOperator) -> Iterator[Change]:
    pairs = list(zip(old.partitions, new.partitions, strict=True))
    if any((was.index, was.keys) != (now.index, now.keys) for was, now in pairs):
        own = "partition owns" if new.count == 1 else f"{new.count} partitions own"
        yield Change("partitions", new.name, f"{new.name}: its {own} other keys")
    for was, now in pairs:
        for text in _values_changed("property", was.properties, now.properties):
            yield Change("partitions", new.name, f"{new.name}: partition {now.index}: {text}")


_PARALLEL = "PARTITION_PARALLEL"


def _was_made_parallel(old: PlannedOperator, new: PlannedOperator) -> bool:
    """Whether an input gained, lost or changed the attribute by which an operator mirrors another."""
    before, after = ({p.name: p.attributes.get(_PARALLEL) for p in o.ports if p.type == "input"} for o in (old, new))
    return any(before[name] != after[name] for name in _both(before, after))


def _ports_changed(old: PlannedOperator, new: PlannedOperator, so: str, carried: _Carried) -> Iterator[str]:
    before, after = ({(port.type, port.name): port for port in o.ports} for o in (old, new))
    yield from (f"{kind} {name} is gone" for kind, name in _gone(before, after))
    yield from (f"{kind} {name} is new" for kind, name in _come(before, after))
    if set(before) == set(after) and list(before) != list(after):
        yield "its ports stand in another order"
    for kind, name in _both(before, after):
        was, now = before[kind, name], after[kind, name]
        if was.payload != now.payload and (new.name, name, was.payload, now.payload) not in carried:
            yield f"{kind} {name} carries {now.payload} instead of {was.payload}"
        if was.connected != now.connected:
            yield f"{kind} {name} is {'now' if now.connected else 'no longer'} connected"
        for attribute in dict.fromkeys((*was.attributes, *now.attributes)):
            held, holds = ({k: v for k, v in p.attributes.items() if k == attribute} for p in (was, now))
            for text in _values_changed("attribute", held, holds):
                yield f"{kind} {name}: {text}{so if attribute == _PARALLEL else ''}"


def _streams_changed(old: Plan, new: Plan, operators: Mapping[str, str]) -> Iterator[Change]:
    before, after = ({stream.name: stream for stream in plan.streams} for plan in (old, new))
    gone, come = _gone(before, after), _come(before, after)
    leading = {_ends(before[name], operators): name for name in gone}
    renamed = {now: leading[_ends(after[now], {})] for now in come if _ends(after[now], {}) in leading}
    for name in gone:
        if name not in renamed.values():
            yield Change("stream", name, f"stream {name} is gone")
    for name in come:
        if name in renamed:
            yield Change("stream", name, f"stream {renamed[name]} is now called {name}")
            yield from _stream_changed(before[renamed[name]], after[name])
        else:
            yield Change("stream", name, f"stream {name} is new: {_drawn(after[name])}")
    for name in _both(before, after):
        yield from _stream_changed(before[name], after[name])


def _ends(stream: PlannedStream, renamed: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The ports that the stream connects, under the new names of their operators. They are unique to the stream."""
    ends = (stream.source, *stream.sinks)
    return tuple((renamed.get(end.operator, end.operator), end.port) for end in ends)


def _stream_changed(old: PlannedStream, new: PlannedStream) -> Iterator[Change]:
    def changed(text: str, *, is_routing: bool = False) -> Change:
        return Change("stream", new.name, f"stream {new.name} {text}", is_routing)

    if _drawn(old) != _drawn(new):
        yield changed(f"leads {_drawn(new)} instead of {_drawn(old)}")
    elif old.sinks != new.sinks:
        yield changed(f"is routed {_routed(new)} instead of {_routed(old)}", is_routing=True)
    if old.locality != new.locality:
        yield changed(
            f"is {new.locality or 'free to run anywhere'} instead of {old.locality or 'free to run anywhere'}"
        )
    if old.payload != new.payload:
        yield changed(f"carries {new.payload} instead of {old.payload}")
    elif old.fields and old.fields != new.fields:  # plans of an earlier dagkit have none
        yield changed(f"carries {new.payload} {_fields_changed(old.fields, new.fields)}")
    if old.unifiers != new.unifiers:
        yield from (changed(text, is_routing=True) for text in _unifiers_changed(old.unifiers, new.unifiers))


def _fields_changed(old: Sequence[str], new: Sequence[str]) -> str:
    differing = {"without": _gone(old, new), "with": _come(old, new)}
    texts = [f"{how} {', '.join(fields)}" for how, fields in differing.items() if fields]
    return " and ".join(texts) or "with its fields in another order"


def _unifiers_changed(old: Sequence[PlannedUnifier], new: Sequence[PlannedUnifier]) -> Iterator[str]:
    if not old:
        yield f"now has {_unifiers(len(new))}"
    elif not new:
        yield f"no longer has {'a unifier' if len(old) == 1 else f'its {_unifiers(len(old))}'}"
    elif len(old) != len(new):
        yield f"has {_unifiers(len(new))} instead of {len(old)}"
    before, after = ({unifier.name: unifier for unifier in unifiers} for unifiers in (old, new))
    is_reported = len(old) != len(new)
    # Only if names are unique: otherwise it is unknown which unifier became which.
    for name in _both(before, after) if len(before) == len(old) and len(after) == len(new) else ():
        for text in _unifier_changed(before[name], after[name]):
            is_reported = True
            yield f"has a unifier {name} that {text}"
    if not is_reported:
        yield "has unifiers under other names or in another order"


def _unifiers(count: int) -> str:
    return f"{count} unifier{'' if count == 1 else 's'}"


def _unifier_changed(old: PlannedUnifier, new: PlannedUnifier) -> Iterator[str]:
    if old.kind != new.kind:
        yield f"is a {new.kind} instead of a {old.kind}"
    if old.level != new.level:
        yield f"stands at level {new.level} instead of {old.level}"
    if len(old.inputs) != len(new.inputs):
        yield f"reads {len(new.inputs)} instead of {len(old.inputs)}"
    elif old.inputs != new.inputs:
        yield f"reads {', '.join(new.inputs)} instead of {', '.join(old.inputs)}"
    if (old.serves, old.partition) != (new.serves, new.partition):
        yield f"serves {_served(new)} instead of {_served(old)}"
    for text in _values_changed("attribute", old.attributes, new.attributes):
        yield f"has other attributes: {text}"


def _served(unifier: PlannedUnifier) -> str:
    which = f"#{unifier.partition}" if unifier.partition is not None else ""
    return f"{unifier.serves or 'another unifier'}{which}"


def _drawn(stream: PlannedStream) -> str:
    return f"{stream.source} > {', '.join(str(sink) for sink in stream.sinks)}"


def _routed(stream: PlannedStream) -> str:
    return ", ".join(f"{sink.routing}{' in parallel' if sink.parallel else ''}" for sink in stream.sinks)


def _stages_changed(old: Plan, new: Plan) -> Iterator[Change]:
    before, after = ({stage.operators: stage for stage in plan.stages} for plan in (old, new))
    for operators in _come(before, after):
        yield Change("stage", after[operators].name, f"{after[operators].name} {_runs_as_one(operators)}")
    for operators in _gone(before, after):
        if len(operators) > 1:
            yield Change("stage", before[operators].name, f"{before[operators].name} no longer run as one stage")
    for operators in _both(before, after):
        yield from _stage_changed(before[operators], after[operators])
    if not _come(before, after) and _cut_where(old) != _cut_where(new):
        yield Change("stage", new.application, "the same stages are cut from each other for other reasons")


def _runs_as_one(operators: tuple[str, ...]) -> str:
    return "now run as one stage" if len(operators) > 1 else "now runs as a stage of its own"


def _stage_changed(old: Stage, new: Stage) -> Iterator[Change]:
    parts = []
    if old.level != new.level:
        parts.append(f"at level {new.level} instead of {old.level}")
    if old.place is not new.place:
        parts.append(f"on the {new.place} instead of the {old.place}")
    if old.slots != new.slots:
        parts.append(f"with {new.slots} slot{'' if new.slots == 1 else 's'} instead of {old.slots}")
    if parts:
        yield Change("stage", new.name, f"stage {new.name} runs {', '.join(parts)}")


def _cut_where(plan: Plan) -> set[tuple[str, str, str, bool]]:
    return {(str(cut.source), str(cut.sink), cut.kind, cut.exchange) for cut in plan.cuts}


def _values_changed(what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{what} {name} is no longer set (was {clipped(old[name])})" for name in _gone(old, new))
    yield from (f"{what} {name} is now set to {clipped(new[name])}" for name in _come(old, new))
    for name in _both(old, new):
        was, now = old[name], new[name]
        if canonical(was) == canonical(now):  # as in the fingerprint, where 1 differs from true
            continue
        if _are_objects_of_one_class(was, now):
            yield from _values_changed(what, _dotted(name, was), _dotted(name, now))
        else:
            yield f"{what} {name} changes from {clipped(was)} to {clipped(now)}"


def _are_objects_of_one_class(was: Any, now: Any) -> bool:
    """Whether both values are objects, as plans describe them, whose fields can be compared."""
    return isinstance(was, Mapping) and isinstance(now, Mapping) and "class" in was and was["class"] == now.get("class")


def _dotted(name: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields under the names of property files: `scanner.files`."""
    return {f"{name}.{field}": value for field, value in fields.items()}


def _gone(old: Collection[T], new: Collection[T]) -> Sequence[T]:
    return [key for key in old if key not in new]


def _come(old: Collection[T], new: Collection[T]) -> Sequence[T]:
    return [key for key in new if key not in old]


def _both(old: Mapping[T, Any], new: Mapping[T, Any]) -> Iterable[T]:
    return [key for key in old if key in new]
