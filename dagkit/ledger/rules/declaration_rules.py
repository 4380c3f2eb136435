"""Laws of what is declared: transforms, sources and schemas."""

from collections import Counter
from collections.abc import Iterator

from dagkit.ledger.format.events import (
    AddPushSource,
    DisablePollingSource,
    DisablePushSource,
    Event,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SetVocab,
    Step,
)
from dagkit.ledger.format.faults import Fault
from dagkit.ledger.rules.evolution import breaches
from dagkit.ledger.rules.proposal import Proposal, fault


def _transform(at: Proposal) -> Iterator[SetTransform]:
    if isinstance(at.block.event, SetTransform):
        yield at.block.event


def a_transform_has_an_input(at: Proposal) -> Iterator[Fault]:
    """What reads nothing derives nothing."""
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
    """A name may mean another chain tomorrow; an id never does."""
    for event in _transform(at):
        for given in event.inputs:
            if not given.dataset_ref.startswith("did:odf:") or not given.alias:
                yield fault(
                    at,
                    "input-unresolved",
                    f"input {given.dataset_ref!r} is not an id with an alias",
                    "give the chain's id (did:odf:...) as datasetRef and its name as alias",
                )


def queries_are_in_list_form(at: Proposal) -> Iterator[Fault]:
    """One form, so that equal transforms are equal: a list, of which only the last has no alias."""
    for event in _transform(at):
        queries = event.transform.queries or ()
        aliased = [query.alias is not None for query in queries]
        if event.transform.query is not None or not queries or aliased != [True] * (len(queries) - 1) + [False]:
            yield fault(
                at,
                "query-malformed",
                "the transform's queries are not a list of which only the last has no alias",
                "put a single query into `queries`, and name every query but the last",
            )


def _known_event(at: Proposal, key: str) -> Event | None:
    pointer = at.standing.keys.get(key)
    return None if pointer is None else at.witness.event_at(pointer)


def a_source_is_added_once(at: Proposal) -> Iterator[Fault]:
    """Adding it again unchanged says nothing."""
    event = at.block.event
    if isinstance(event, AddPushSource) and _known_event(at, f"AddPushSource {event.source_name}") == event:
        yield fault(at, "source-repeated", f"push source {event.source_name!r} is already so", "leave it out")
    if isinstance(event, SetPollingSource) and _known_event(at, "SetPollingSource") == event:
        yield fault(at, "source-repeated", "the polling source is already so", "leave it out")


def a_chain_polls_or_is_pushed_to(at: Proposal) -> Iterator[Fault]:
    """Two ways in would make the order of the data a matter of luck."""
    event, keys = at.block.event, at.standing.keys
    if isinstance(event, AddPushSource) and "SetPollingSource" in keys:
        yield fault(
            at,
            "source-conflicting",
            "the chain has a polling source, and gets a push source",
            "append a DisablePollingSource first",
        )
    pushed = next((key for key in keys if key.startswith("AddPushSource ")), None)
    if isinstance(event, SetPollingSource) and pushed:
        yield fault(
            at,
            "source-conflicting",
            f"the chain has a push source ({pushed.removeprefix('AddPushSource ')}), and gets a polling source",
            "append a DisablePushSource first",
        )


def only_a_known_source_is_disabled(at: Proposal) -> Iterator[Fault]:
    """Disabling what is not there is a slip of the name."""
    event, keys = at.block.event, at.standing.keys
    if isinstance(event, DisablePollingSource) and "SetPollingSource" not in keys:
        yield fault(at, "source-unknown", "there is no polling source to disable", "leave it out")
    if isinstance(event, DisablePushSource) and f"AddPushSource {event.source_name}" not in keys:
        known = [key.removeprefix("AddPushSource ") for key in keys if key.startswith("AddPushSource ")]
        yield fault(
            at,
            "source-unknown",
            f"there is no push source {event.source_name!r} to disable",
            f"known here: {', '.join(known) or 'none'}",
        )


def _steps(at: Proposal) -> Iterator[Step]:
    event = at.block.event
    if isinstance(event, SetPollingSource | AddPushSource):
        yield event.read
    if isinstance(event, SetPollingSource):
        yield event.fetch


def a_source_describes_its_columns_once(at: Proposal) -> Iterator[Fault]:
    """Two descriptions would in time disagree."""
    for step in _steps(at):
        if step.setting("schema") is not None and step.setting("ddlSchema") is not None:
            yield fault(
                at,
                "source-schema-doubled",
                f"the {step.kind} step has both a schema and a ddlSchema",
                "keep the schema: ddlSchema is the old form",
            )


def a_chain_of_blocks_is_found_by_id_or_address(at: Proposal) -> Iterator[Fault]:
    """Ethereum logs come from somewhere."""
    for step in _steps(at):
        if step.kind == "EthereumLogs" and step.setting("chainId") is None and step.setting("nodeUrl") is None:
            yield fault(at, "source-endpointless", "EthereumLogs has neither chainId nor nodeUrl", "give one of them")


def a_schema_is_described(at: Proposal) -> Iterator[Fault]:
    """An event that sets a schema has one."""
    event = at.block.event
    if isinstance(event, SetDataSchema) and event.schema_ is None and event.raw_arrow_schema is None:
        yield fault(at, "schema-undescribed", "SetDataSchema has no schema", "give its fields")


def a_schema_changes_when_it_is_set_again(at: Proposal) -> Iterator[Fault]:
    """Setting it again unchanged says nothing."""
    event = at.block.event
    if isinstance(event, SetDataSchema) and _known_event(at, "SetDataSchema") == event:
        yield fault(at, "schema-unchanged", "the schema is already so", "leave it out")


def a_schema_grows_compatibly(at: Proposal) -> Iterator[Fault]:
    """Old slices are never rewritten, so every later schema must still describe them."""
    event = at.block.event
    if not isinstance(event, SetDataSchema):
        return
    before = _known_event(at, "SetDataSchema")
    if not isinstance(before, SetDataSchema) or before.schema_ is None or event.schema_ is None:
        return
    for breach in breaches(before.schema_, event.schema_):
        yield fault(
            at,
            "schema-incompatible",
            breach,
            "only add columns, and wrap their type in Option; for anything else begin a new chain",
        )


def system_columns_are_described(at: Proposal) -> Iterator[Fault]:
    """Other tools look for them; we can do without, so this is only said."""
    event = at.block.event
    if not isinstance(event, SetDataSchema) or event.schema_ is None:
        return
    vocab = _known_event(at, "SetVocab")
    names = vocab if isinstance(vocab, SetVocab) else SetVocab()
    wanted = (
        names.offset_column or "offset",
        names.operation_type_column or "op",
        names.system_time_column or "system_time",
    )
    have = {column.name for column in event.schema_.fields}
    missing = [name for name in wanted if name not in have]
    if missing:
        yield fault(
            at,
            "system-column-missing",
            f"the schema lacks {', '.join(missing)}",
            "describe the system columns, or name yours with SetVocab, if other tools are to read the data",
        )
