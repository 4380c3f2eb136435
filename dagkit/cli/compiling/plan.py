"""`dagkit plan`: how an application will run, and why."""

from collections.abc import Iterator
from typing import Any

import rich_click as click

from dagkit.cli.application.opening import compiled
from dagkit.cli.application.options import Asked, application, spoken
from dagkit.cli.terminal.output import Output
from dagkit.cli.terminal.pages import as_json, heading, paragraph, section
from dagkit.errors import Diagnostic
from dagkit.ground.amounts import counted
from dagkit.plan import Plan, fingerprint, write_plan
from dagkit.plan.model import PlannedOperator, known_payload


@click.command()
@application
@spoken
def plan(*, asked: Asked, output: Output) -> None:
    """Show how an application will run: operators, streams, fused stages, and partitions with the reason of each count.

    With `--json`, print the plan itself, which `dagkit diff` can read.
    """
    compilation = compiled(asked, output)
    if output.as_json:
        # On stderr, since `dagkit diff` reads what is printed here as a plan.
        output.notes(compilation.notes)
        output.result(write_plan(compilation.plan))
    else:
        output.result(*page(compilation.plan, () if output.quiet else compilation.notes, verbose=output.verbose))


def page(plan: Plan, notes: tuple[Diagnostic, ...], *, verbose: bool = False) -> list[Any]:
    """The plan as a page of text."""
    parts = [heading(plan.application, f"plan {fingerprint(plan)}"), paragraph(_summary(plan))]
    parts += section("Operators", ("name", "kind", "#stage", "#partitions", "why"), list(_operators(plan)))
    parts += section("Streams", ("name", "from", "to", "items", "routing"), list(_streams(plan)))
    parts += section("Unifiers", ("name", "kind", "#reads", "serves"), list(_unifiers(plan)))
    parts += stage_section(plan)
    parts += cut_section(plan)
    if verbose:
        parts += section("Properties", ("operator", "property", "value"), list(_properties(plan)))
        parts += section("Attributes", ("of", "attribute", "value"), list(_attributes(plan)))
        parts += section("Partitions", ("operator", "#index", "owns"), list(_partitions(plan)))
    parts += section("Notes", ("where", "what"), [(note.where or "", _note(note)) for note in notes])
    return parts


def stage_section(plan: Any) -> list[Any]:
    """The stages of a plan, or of a fused graph."""
    rows = [(n, s.level, s.place.value, s.slots, " > ".join(s.operators)) for n, s in enumerate(plan.stages, 1)]
    return section("Stages", ("#stage", "#level", "runs on", "#slots", "operators"), rows)


def cut_section(plan: Any) -> list[Any]:
    """The cuts between stages, each with its reason."""
    rows = [(f"{c.source} > {c.sink}", c.kind.value, "yes" if c.exchange else "no", c.reason) for c in plan.cuts]
    return section("Cuts", ("between", "kind", "exchange", "why"), rows)


def _summary(plan: Plan) -> str:
    held = ((plan.operators, "operator"), (plan.streams, "stream"), (plan.stages, "stage"), (plan.cuts, "cut"))
    return f"{', '.join(counted(len(parts), noun) for parts, noun in held)}, {counted(plan.levels, 'level')}"


def _operators(plan: Plan) -> Iterator[tuple[object, ...]]:
    numbers = {stage.name: number for number, stage in enumerate(plan.stages, 1)}
    for operator in plan.operators:
        yield operator.name, operator.kind, numbers[operator.stage], operator.count, operator.why.text


def _streams(plan: Plan) -> Iterator[tuple[object, ...]]:
    for stream in plan.streams:
        for place, sink in enumerate(stream.sinks):
            first = (stream.name, stream.source) if place == 0 else ("", "")
            near = f", {stream.locality}" if stream.locality and place == 0 else ""
            yield *first, sink, (known_payload(stream.payload) or "Any") if place == 0 else "", f"{sink.routing}{near}"


def _unifiers(plan: Plan) -> Iterator[tuple[object, ...]]:
    for stream in plan.streams:
        for unifier in stream.unifiers:
            which = f"#{unifier.partition}" if unifier.partition is not None else ""
            yield unifier.name, unifier.kind, len(unifier.inputs), f"{unifier.serves or 'another unifier'}{which}"


def _properties(plan: Plan) -> Iterator[tuple[object, ...]]:
    for operator in plan.operators:
        for name, value in operator.properties.items():
            yield operator.name, name, as_json(value)


def _attributes(plan: Plan) -> Iterator[tuple[object, ...]]:
    for name, value in plan.attributes.items():
        yield plan.application, name, as_json(value)
    for operator in plan.operators:
        for name, value in operator.attributes.items():
            yield operator.name, name, as_json(value)
        for port in operator.ports:
            for name, value in port.attributes.items():
                yield f"{operator.name}.{port.name}", name, as_json(value)


def _partitions(plan: Plan) -> Iterator[tuple[object, ...]]:
    for operator in plan.operators:
        for partition in operator.partitions if operator.count > 1 else ():
            yield operator.name, partition.index, _owned(operator, partition.index)


def _owned(operator: PlannedOperator, index: int) -> str:
    keys = operator.partitions[index].keys
    return ", ".join(f"{port}: keys {','.join(map(str, k.keys))} of mask {k.mask:#x}" for port, k in keys.items())


def _note(note: Diagnostic) -> str:
    return f"{note.severity}: {note.problem} [{note.code}]"
