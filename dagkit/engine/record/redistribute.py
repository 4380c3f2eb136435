"""What a window leaves for the next one, also for other partitions or keys: state, and the items of delays."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from dagkit.api.keyed import saved_keys
from dagkit.api.operators import DelayOperator
from dagkit.api.partitioning import PartitionKeys
from dagkit.api.state import Declared, KeyedState, declared_state
from dagkit.engine.program.address import operator_of_state
from dagkit.engine.program.codec import JsonCodec
from dagkit.engine.program.entrances import made_by
from dagkit.engine.program.program import Program
from dagkit.engine.record.checkpoint import Held
from dagkit.engine.worker.instances import SavedState
from dagkit.engine.worker.outbox import Outbox, Sent
from dagkit.engine.worker.protocol import Answer, SlotState
from dagkit.engine.worker.sliding import together
from dagkit.errors import RunFailure, Scene
from dagkit.schema.batch import Batch

State = Mapping[str, tuple[SavedState, ...]]
"""The state of operators: by operator, then by partition."""


def _state_stranded(operator: str, names: Sequence[str], before: int, now: int) -> RunFailure:
    """State was saved for partitions that no longer exist, and nothing decides which one takes it over."""
    return RunFailure(
        f"{operator} has {now} partitions and had {before}, and its state {', '.join(names)} belongs to one "
        "partition each",
        "keep it in a KeyedState by the key of the input, which follows the partitions, or start with as many as "
        "before",
        Scene(operator),
        code="state-stranded",
    )


def redistribute_state(program: Program, kept: Mapping[str, Sequence[SavedState]]) -> dict[str, tuple[SavedState, ...]]:
    """Return the state of every remaining operator, distributed to its present partitions."""
    return {
        name: _distributed(name, program, states)
        for name, states in kept.items()
        if operator_of_state(name) in program.stage_of and any(states)
    }


def _distributed(name: str, program: Program, states: Sequence[SavedState]) -> tuple[SavedState, ...]:
    if name not in program.operators:
        return _panes_distributed(states, len(program.operators[operator_of_state(name)]))
    operators = program.operators[name]
    declared = declared_state(type(operators[0]))
    states = [{n: value for n, value in state.items() if n in declared} for state in states]
    owners = _owners(name, program)
    if len(states) == len(operators):
        return _redistributed(states, owners, declared)
    follows = {n for n, kind in declared.items() if isinstance(kind, KeyedState) and (owners or len(operators) == 1)}
    staying = sorted(
        {n for state in states[len(operators) :] for n, value in state.items() if value and n not in follows}
    )
    if staying:
        raise _state_stranded(name, staying, len(states), len(operators))
    allocated = [{n: value for n, value in state.items() if n not in follows} for state in states[: len(operators)]]
    allocated += [{} for _ in range(len(operators) - len(allocated))]
    for state_name in sorted(follows):
        if _is_held_twice(states, state_name):
            raise _state_stranded(name, [state_name], len(states), len(operators))
        for slot, mine in enumerate(_by_owner(states, state_name, owners, len(operators))):
            if mine:
                allocated[slot][state_name] = mine
    return tuple(allocated)


def _redistributed(
    states: Sequence[SavedState], owners: Sequence[PartitionKeys], declared: Mapping[str, Declared[Any]]
) -> tuple[SavedState, ...]:
    """Redistribute among as many partitions as before; keys that several partitions hold stay where they are."""
    allocated = [dict(state) for state in states]
    for state_name in sorted(n for n, kind in declared.items() if isinstance(kind, KeyedState) and owners):
        if _is_held_twice(states, state_name):
            continue
        for slot, mine in enumerate(_by_owner(states, state_name, owners, len(states))):
            # Also if it has no keys now: a partition whose keys went elsewhere must not keep them.
            if mine or state_name in allocated[slot]:
                allocated[slot][state_name] = mine
    return tuple(allocated)


def _is_held_twice(states: Sequence[SavedState], state_name: str) -> bool:
    """Whether a key is held by more than one partition."""
    keys = [text for state in states for text in _entries(state, state_name)]
    return len(set(keys)) < len(keys)


def _entries(state: SavedState, state_name: str) -> Mapping[str, Any]:
    """Value and code of each key, as KeyedState writes them."""
    return saved_keys(state.get(state_name, {}))


def _panes_distributed(states: Sequence[SavedState], count: int) -> tuple[SavedState, ...]:
    """Distribute the panes of a sliding window: the receivers are the same for every sender."""
    if len(states) <= count:
        return (*states, *({} for _ in range(count - len(states))))
    return (together((states[0], *states[count:])), *states[1:count])


def _owners(name: str, program: Program) -> Sequence[PartitionKeys]:
    """The keys of each partition at the first keyed input."""
    keyed = (target.keys for target in program.targets.values() if target.into[0] == name and target.keys)
    return next(keyed, ())


def _by_owner(
    states: Sequence[SavedState], state_name: str, owners: Sequence[PartitionKeys], count: int
) -> list[dict[str, JsonValue]]:
    """The entries of each present partition. One without an owner stays in its partition, else goes to the first."""
    mine: list[dict[str, JsonValue]] = [{} for _ in range(count)]
    for before, state in enumerate(states):
        for text, entry in _entries(state, state_name).items():
            code, otherwise = int(entry[1]), before if before < count else 0
            mine[next((slot for slot, keys in enumerate(owners) if keys.owns(code)), otherwise)][text] = entry
    return mine


def state_after(program: Program, before: State, answer: Answer) -> State:
    """Return the state after a window; operators that reported none keep theirs."""
    by_operator: dict[str, dict[int, Any]] = {}
    for report in answer.reports:
        for name, saved in report.state.items():
            by_operator.setdefault(name, {})[report.slot] = saved
    after = dict(before)
    for name, by_slot in by_operator.items():
        count = len(program.operators[operator_of_state(name)])
        after[name] = tuple(by_slot.get(slot, {}) for slot in range(count))
    return after


def state_by_slot(program: Program, state: State) -> dict[tuple[int, int], SlotState]:
    """The state of the operators in each slot, by level and slot."""
    by_slot: dict[tuple[int, int], dict[str, Any]] = {}
    for name, states in state.items():
        level = program.stage_of[operator_of_state(name)].level
        for slot, saved in enumerate(states):
            if saved:
                by_slot.setdefault((level, slot), {})[name] = saved
    return dict(by_slot)


def first_of_delays(program: Program) -> list[Sent]:
    """Return the items that delay operators send in the first window."""
    sent: list[Sent] = []
    for stage in program.stages:
        for name in stage.operators:
            for slot, operator in enumerate(program.operators[name]):
                if isinstance(operator, DelayOperator):
                    outbox = Outbox(slot)
                    first = list(operator.first_window())
                    for target in stage.targets.get((name, "output"), ()):
                        outbox.channel(target).batch(Batch.of(first))
                    sent += outbox.rest()
    return sent


def kept(program: Program, sent: Sent) -> Held:
    """Return the items that a delay holds, in the form of a checkpoint."""
    target = program.targets[sent.wire]
    written = JsonCodec(target.address, target.payload)
    return Held(into=target.address, slot=sent.slot, items=tuple(written.of(item) for item in sent.batch.items()))


def restored(program: Program, helds: Iterable[Held]) -> list[Sent]:
    """Return the items that the delays held at the end of the last window."""
    addresses = {target.address: target for target in program.targets.values()}
    sent = []
    for held in helds:
        target = addresses[held.into]
        written = JsonCodec(held.into, target.payload)
        batch = Batch.of([written.back(item) for item in held.items])
        if target.keys:  # the partitions may have changed: route each item by its key
            shares = made_by(target.into[0], target.shares(batch, held.slot, 0))
        elif held.slot < target.slots:
            shares = iter([(held.slot, batch)])
        else:
            raise RunFailure(
                f"a delay holds items for partition {held.slot + 1} of {held.into}, which now has {target.slots}, and "
                "the input has no key by which others could take them over",
                "give the input a key, or start with as many partitions as before",
                Scene(held.into.operator),
                code="items-stranded",
            )
        sent += [Sent(target.wire, slot, target.level, False, share) for slot, share in shares]
    return sent
