"""Rules of declarations: transforms and schemas."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from dagkit.ledger.format.events import DataField, DataSchema, Event, SetDataSchema, SetTransform
from dagkit.ledger.format.faults import Fault
from dagkit.ledger.rules.proposal import Proposal, fault


def column_type(written: str | Mapping[str, Any]) -> Any:
    """The type in its object form, whichever of the two notations was used."""
    if isinstance(written, str):
        return {"kind": written}
    return {
        name: (
            column_type(value)
            if name in ("inner", "itemType", "keyType", "valueType")
            else [_field(f) for f in value]
            if name == "fields"
            else value
        )
        for name, value in written.items()
    }


def _field(column: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": column["name"], "type": column_type(column["type"])}


def is_optional(column: DataField) -> bool:
    """Whether old records may lack the column."""
    return bool(column_type(column.type)["kind"] in ("Option", "Null"))


def breaches(old: DataSchema, new: DataSchema) -> Iterator[str]:
    """The changes that old readers or old records do not support."""
    before = {column.name: column for column in old.fields}
    after = {column.name: column for column in new.fields}
    for name, column in before.items():
        if name not in after:
            yield f"column {name!r} is missing"
        elif column_type(column.type) != column_type(after[name].type):
            yield f"column {name!r} changes its type from {column_type(column.type)} to {column_type(after[name].type)}"
    for name, column in after.items():
        if name not in before and not is_optional(column):
            yield f"column {name!r} is new but not optional"


def _transform(at: Proposal) -> Iterator[SetTransform]:
    if isinstance(at.block.event, SetTransform):
        yield at.block.event


def a_transform_has_an_input(at: Proposal) -> Iterator[Fault]:
    """A derivative chain derives its data from at least one input."""
    for event in _transform(at):
        if not event.inputs:
            yield fault(at, "transform-inputless", "the transform has no input", "name the chains that it reads")


def inputs_are_declared_once(at: Proposal) -> Iterator[Fault]:
    """A chain consumed under two names would be consumed twice."""
    for event in _transform(at):
        counts = Counter(i.dataset_ref for i in event.inputs)
        for name in [name for name, count in counts.items() if count > 1]:
            yield fault(at, "input-duplicated", f"input {name} is declared twice", "declare each input once")


def inputs_are_resolved_and_named(at: Proposal) -> Iterator[Fault]:
    """A name may later mean another chain; an id never does."""
    for event in _transform(at):
        for declared in event.inputs:
            if not declared.dataset_ref.startswith("did:odf:") or not declared.alias:
                yield fault(
                    at,
                    "input-unresolved",
                    f"input {declared.dataset_ref!r} is not an id with an alias",
                    "give the chain's id (did:odf:...) as datasetRef and its name as alias",
                )


def only_the_last_query_has_no_alias(at: Proposal) -> Iterator[Fault]:
    """The last query is the transform's result, so it alone has no alias; a transform has at least that one."""
    for event in _transform(at):
        aliased = [query.alias is not None for query in event.transform.queries]
        if aliased != [True] * (len(aliased) - 1) + [False]:
            yield fault(
                at,
                "query-malformed",
                "the transform's queries are not a list of which only the last has no alias",
                "give at least one query, and name every query but the last",
            )


def _known_event(at: Proposal, key: str) -> Event | None:
    pointer = at.standing.keys.get(key)
    return None if pointer is None else at.witness.event_at(pointer)


def a_schema_changes_when_it_is_set_again(at: Proposal) -> Iterator[Fault]:
    """Setting an unchanged schema again has no effect."""
    event = at.block.event
    if isinstance(event, SetDataSchema) and _known_event(at, "SetDataSchema") == event:
        yield fault(at, "schema-unchanged", "the schema is the same as before", "leave the event out")


def a_schema_grows_compatibly(at: Proposal) -> Iterator[Fault]:
    """Old slices are never rewritten, so every later schema must still describe them."""
    event = at.block.event
    if not isinstance(event, SetDataSchema):
        return
    before = _known_event(at, "SetDataSchema")
    if not isinstance(before, SetDataSchema):
        return
    for breach in breaches(before.schema_, event.schema_):
        yield fault(
            at,
            "schema-incompatible",
            breach,
            "only add columns, and wrap their type in Option; for any other change start a new chain",
        )
