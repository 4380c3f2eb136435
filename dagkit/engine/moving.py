"""State when the number of partitions changed since it was saved: keyed values follow their keys."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import JsonValue

from dagkit.api.operators import Operator
from dagkit.api.partitioning import PartitionKeys
from dagkit.api.state import KeyedState, State, declared_state
from dagkit.engine.live import SavedState
from dagkit.engine.program import Program
from dagkit.engine.sliding import together
from dagkit.errors import DagkitError


class StateStranded(DagkitError):
    """State was saved for partitions that are no more, and nothing says who takes it over."""

    exit_code: ClassVar[int] = 7

    def __init__(self, operator: str, names: Sequence[str], before: int, now: int) -> None:
        super().__init__(
            f"{operator} has {now} partitions and had {before}, and its state {', '.join(names)} belongs to one of "
            "them each; keep it in a KeyedState, which follows its keys, or start with as many as before"
        )


def moved(program: Program, kept: Mapping[str, Sequence[SavedState]]) -> dict[str, tuple[SavedState, ...]]:
    """The state of every operator that still is there, dealt to the partitions that it has now."""
    return {
        name: _dealt(name, program, states)
        for name, states in kept.items()
        if name.partition(".")[0] in program.stage_of and any(states)
    }


def _dealt(name: str, program: Program, states: Sequence[SavedState]) -> tuple[SavedState, ...]:
    if name not in program.operators:
        return _panes_dealt(states, len(program.operators[name.partition(".")[0]]))
    operators = program.operators[name]
    declared = declared_state(type(operators[0]))
    states = [{n: value for n, value in state.items() if n in declared} for state in states]
    if len(states) == len(operators) or len(operators) == 1 == len(states):
        return tuple(states)
    single = sorted({n for state in states[len(operators) :] for n in state if isinstance(declared[n], State)})
    if single:
        raise StateStranded(name, single, len(states), len(operators))
    dealt: list[dict[str, JsonValue]] = [
        {n: value for n, value in state.items() if isinstance(declared[n], State)} for state in states[: len(operators)]
    ]
    dealt += [{} for _ in range(len(operators) - len(dealt))]
    owners = _owners(name, program)
    for state_name, kind in declared.items():
        if isinstance(kind, KeyedState):
            entries = [entry for state in states for entry in state.get(state_name, [])]  # type: ignore[union-attr]
            for slot, mine in enumerate(_by_owner(entries, owners, operators)):
                if mine:
                    dealt[slot][state_name] = mine
    return tuple(dealt)


def _panes_dealt(states: Sequence[SavedState], count: int) -> tuple[SavedState, ...]:
    """Items in the panes of a sliding window go on to the same receivers, whoever sends them."""
    if len(states) <= count:
        return (*states, *({} for _ in range(count - len(states))))
    return (together((states[0], *states[count:])), *states[1:count])


def _owners(name: str, program: Program) -> Sequence[PartitionKeys]:
    """What each partition owns, at the first input that is keyed."""
    keyed = (target.keys for target in program.targets.values() if target.into[0] == name and target.keys)
    return next(keyed, ())


def _by_owner(
    entries: Sequence[JsonValue], owners: Sequence[PartitionKeys], operators: Sequence[Operator]
) -> list[list[JsonValue]]:
    mine: list[list[JsonValue]] = [[] for _ in operators]
    for entry in entries:
        code = int(entry[2])  # type: ignore[index, arg-type] # key, value, code: as KeyedState writes them
        slot = next((slot for slot, keys in enumerate(owners) if keys.owns(code)), 0)
        mine[slot].append(entry)
    return mine
