"""The program: the part of a plan that workers need to run a slot of any stage, as plain picklable data.

A worker loads this module and not the compiler, which makes programs in `lower.py`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache, partial
from math import gcd
from typing import TYPE_CHECKING, Any

from dagkit.api.operators import DelayOperator, Operator, Unifier
from dagkit.api.partitioning import PartitionKeys
from dagkit.api.running import Context
from dagkit.api.streams import BatchKey, StreamCodec
from dagkit.api.work import SplittableOperator
from dagkit.engine.program.address import Address
from dagkit.engine.program.operator_output import LogPlace
from dagkit.plan.model import Routing
from dagkit.ranges import BundleFinalizer
from dagkit.schema import Bindings
from dagkit.schema.batch import ITEM, Batch
from dagkit.schema.columns import Constant
from dagkit.schema.routing import column_codes, low_codes, routing_code, routing_codes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Port = tuple[str, str]
"""An operator and one of its ports."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The values that all windows of one launch share."""

    application_path: str = ""
    """The application's folder, which contains its ledger."""
    home: str = ""
    """The folder that relative paths of operators start from: where the driver was started."""
    began: datetime | None = None
    """When the driver began the launch."""
    log: LogPlace | None = None
    """The log to which slots append the output of operators."""


SeenWatermarks = tuple[Mapping[str, datetime | None], datetime | None]
"""The watermarks that an operator sees in a window: by input port, and that of all together."""


@dataclass(frozen=True, slots=True)
class Keying:
    """How the items of one input are keyed: by its codec, else its key, else the whole item."""

    codec: StreamCodec[Any] | None = None
    key: Callable[[Any], Any] | None = None
    field: str | None = None
    """The field that is the key, if the key is a single field."""

    def code(self, item: Any) -> int:
        if self.codec is not None:
            return self.codec.get_partition(item)
        return routing_code(item if self.key is None else self.key(item))

    def codes(self, batch: Batch[Any]) -> "npt.NDArray[np.int64]":
        """The lowest 32 bits of the codes of many items."""
        if self.codec is not None:
            return low_codes([self.codec.get_partition(item) for item in batch.items()])
        if self.field is not None:
            return column_codes(batch.column(self.field))
        if isinstance(self.key, BatchKey):
            return column_codes(self.key.column(batch))
        if self.key is None and batch.made_by is None:
            return column_codes(batch.columns[ITEM])
        items = batch.items()
        return low_codes(routing_codes(items if self.key is None else [self.key(item) for item in items]))


@dataclass(frozen=True, slots=True)
class Target:
    """The receiving end of a wire that leaves a stage: the input, and how items are routed to its slots."""

    wire: int
    into: Port
    routing: Routing
    slots: int
    level: int
    keying: Keying
    payload: Any = Any
    """The type of the items, as the compiler inferred it."""
    keys: tuple[PartitionKeys, ...] = ()
    """The keys of each slot, if items are keyed."""
    unifier: Callable[[], Unifier[Any]] | None = None
    """Makes the operator that merges the items of several senders before the input."""
    delayed: bool = False
    """Whether the items arrive in the next window."""
    placed: bool = False
    """Whether the origins of the items are taken along."""
    queued: bool = False
    """Whether the items are elements; work that a window leaves waits on the driver and is allocated again."""

    @property
    def address(self) -> Address:
        """The name of the input in checkpoints. An input has one wire."""
        return Address.of(*self.into)

    def owners(self, item: Any) -> list[int]:
        """The slots that own the key of an item."""
        return self._owners(self.keying.code(item))

    def shares(self, batch: Batch[Any], sender: int, number: int) -> Iterator[tuple[int, Batch[Any]]]:
        """The share of each slot in a batch whose first item is the `number`-th that this sender sends."""
        match self.routing:
            case Routing.STRAIGHT:
                yield sender, batch
            case Routing.GATHERED:
                yield 0, batch
            case Routing.DISTRIBUTED:
                items = batch.items()
                for slot in range(self.slots):
                    # Items go to the slots in turn, over all batches of a sender. Each sender begins at another one.
                    own = slice((slot - sender - number) % self.slots, None, self.slots)
                    share = Batch.of(items[own])
                    if len(share):
                        yield slot, share.placed(partial(_every, batch, own)) if self.placed else share
            case Routing.KEYED:
                yield from self._by_owner(batch)
            case _:
                yield from ((slot, batch) for slot in range(self.slots))

    def _by_owner(self, batch: Batch[Any]) -> Iterator[tuple[int, Batch[Any]]]:
        import pyarrow as pa  # noqa: PLC0415 - compiling alone does not load Arrow

        if self.keying.field is not None and isinstance(batch.column(self.keying.field), Constant):
            codes = self.keying.codes(batch.sliced(0, 1))  # all items have the same key
            yield from ((slot, batch) for code in codes for slot in self._owners(int(code)))
            return
        codes = self.keying.codes(batch)
        for slot, owned in _owned(self.keys, codes):
            if owned.all():
                yield slot, batch
            elif owned.any():
                yield slot, batch.where(pa.array(owned))

    def _owners(self, code: int) -> list[int]:
        return [slot for slot, keys in enumerate(self.keys) if keys.owns(code)]


def _owned(keys: tuple[PartitionKeys, ...], codes: "npt.NDArray[np.int64]") -> "Iterator[tuple[int, npt.NDArray[Any]]]":
    """The mask of the codes that each slot owns."""
    import numpy as np  # noqa: PLC0415 - compiling alone does not load Arrow

    table = _table_of_owners(keys)
    if table is None:
        yield from ((slot, np.isin(codes & own.mask, list(own.keys))) for slot, own in enumerate(keys))
        return
    owners = table[codes & (len(table) - 1)]
    yield from ((slot, owners == slot) for slot in range(len(keys)))


def _every(batch: Batch[Any], own: slice) -> Sequence[int] | None:
    """The positions of a share of a batch."""
    known = batch.places()
    return None if known is None else known[own]


LARGEST_TABLE = 1 << 16
"""The number of keys up to which a table names the owner of each; more are compared with the keys of each slot."""


@lru_cache(maxsize=256)
def _table_of_owners(keys: tuple[PartitionKeys, ...]) -> "npt.NDArray[np.int64] | None":
    """The slot that owns each key of the mask; None if masks differ or are wide, or a key has several owners."""
    import numpy as np  # noqa: PLC0415 - compiling alone does not load Arrow

    size = keys[0].mask + 1
    owned = [key for own in keys for key in own.keys]
    if {own.mask for own in keys} != {size - 1} or size > LARGEST_TABLE or size & (size - 1):
        return None
    if len(set(owned)) < len(owned):
        return None
    table = np.full(size, -1, np.int64)
    for slot, own in enumerate(keys):
        table[[key for key in own.keys if key < size]] = slot
    return table


@dataclass(frozen=True, slots=True)
class StageProgram:
    """One stage: its operators in order, the outputs that link them, and the outputs that leave the stage."""

    name: str
    operators: tuple[str, ...]
    level: int
    slots: int
    links: Mapping[Port, Port]
    targets: Mapping[Port, tuple[Target, ...]]

    def placing(self, inputs: Collection[Port]) -> "StageProgram":
        """This stage, with origins taken along to these inputs."""
        ends = {
            port: tuple(replace(one, placed=one.into in inputs and not one.delayed) for one in targets)
            for port, targets in self.targets.items()
        }
        return replace(self, targets=ends)


@dataclass(frozen=True, slots=True)
class Sliding:
    """The length and step of the sliding windows of an output, in streaming windows."""

    length: int
    step: int
    port: str
    payload: Any

    @property
    def pane(self) -> int:
        """The length of a pane: the windows and the step are multiples of it."""
        return gcd(self.length, self.step)


@dataclass(frozen=True)
class Program:
    """All stages of an application, its operators by slot, and the lengths of their windows."""

    application: str
    stages: tuple[StageProgram, ...]
    """The stages of the workers, upstream first."""
    sources: Mapping[str, Mapping[str, tuple[Target, ...]]]
    """The input operators, which run on the driver, and the targets of each of their outputs."""
    operators: Mapping[str, tuple[Operator, ...]]
    windows: Mapping[str, int]
    """Streaming windows in an application window, by operator."""
    keyings: Mapping[Port, Keying]
    """The keying of every input."""
    sliders: Mapping[Port, Sliding]
    """The outputs whose windows overlap."""
    contexts: Mapping[str, Context]
    """What `setup` of each operator gets, as far as it is the same in each partition and window."""
    outputs: Mapping[Port, Any]
    """The payload of every output of the input operators."""
    types: Mapping[str, Bindings]
    """The types that the type variables of each operator stand for, by operator."""
    placed: frozenset[Port] = frozenset()
    """The inputs for whose items the origins are taken along."""

    def for_workers(self) -> "Program":
        """The program without the parts that only the driver needs: input operators and their payloads."""
        names = {name for stage in self.stages for name in stage.operators}
        running = {name: slots for name, slots in self.operators.items() if name in names}
        return replace(self, operators=running, outputs={})

    @property
    def reads(self) -> bool:
        """Whether an operator reads elements, so that items may have a place."""
        return any(isinstance(copies[0], SplittableOperator) for copies in self.operators.values())

    def placing(self, operators: Iterable[str]) -> "Program":
        """This program, with origins taken along to all inputs from which items reach these operators in a window.

        What an operator reads has its own origin, and items that a delay held have none.
        """
        seen = set(operators)
        if not seen:
            return self
        queued = {target.into for target in self.targets.values() if target.queued}
        above: dict[str, list[tuple[Port, str]]] = defaultdict(list)
        for into, source in self.feeders.items():
            if into not in queued:
                above[into[0]].append((into, source))
        following, placed = list(seen), set(self.placed)
        while following:
            name = following.pop()
            if name not in self.operators or isinstance(self.operators[name][0], DelayOperator):
                continue  # the program of workers has no input operators, and nothing is above those
            for into, source in above[name]:
                placed.add(into)
                if source not in seen:
                    seen.add(source)
                    following.append(source)
        return replace(self, stages=tuple(stage.placing(placed) for stage in self.stages), placed=frozenset(placed))

    @property
    def levels(self) -> int:
        return 1 + max((stage.level for stage in self.stages), default=0)

    def stages_at(self, level: int) -> tuple[StageProgram, ...]:
        return tuple(stage for stage in self.stages if stage.level == level)

    @cached_property
    def stage_of(self) -> Mapping[str, StageProgram]:
        """The stage of every operator on the workers."""
        return {operator: stage for stage in self.stages for operator in stage.operators}

    def context_of(
        self,
        operator: str,
        partition: int,
        window_id: int,
        launch: Launch = Launch(),
        *,
        seen: SeenWatermarks | None = None,
        finalizer: BundleFinalizer | None = None,
        began: datetime | None = None,
    ) -> Context:
        """The context of a partition of an operator."""
        ports, watermark = ({}, None) if seen is None else seen
        return replace(
            self.contexts[operator],
            partition=partition,
            window_id=window_id,
            home=launch.home,
            application_path=launch.application_path,
            watermarks=ports,
            watermark=watermark,
            finalizer=finalizer or BundleFinalizer(),
            launched=launch.began,
            began=began,
        )

    def slots_at(self, level: int) -> int:
        """The number of slots of the widest stage of a level."""
        return max((stage.slots for stage in self.stages_at(level)), default=1)

    @cached_property
    def feeders(self) -> Mapping[Port, str]:
        """The operator that feeds each connected input."""
        found = {into: source for stage in self.stages for (source, _), into in stage.links.items()}
        for stage in self.stages:
            found |= {target.into: source for (source, _), ends in stage.targets.items() for target in ends}
        for source, outputs in self.sources.items():
            found |= {target.into: source for ends in outputs.values() for target in ends}
        return found

    def after(self, operator: str) -> frozenset[str]:
        """All operators that the items of an operator may reach in the same window."""
        found: set[str] = set()
        follow = [operator]
        while follow:
            stage = self.stage_of[follow[-1]]
            sender = follow.pop()
            ends = [into for (source, _), into in stage.links.items() if source == sender]
            ends += [target.into for (source, _), to in stage.targets.items() if source == sender for target in to]
            reached = {name for name, _ in ends} - found
            found |= reached
            follow += reached
        return frozenset(found)

    @property
    def queued_slots(self) -> dict[Address, int]:
        """The number of slots that read from each queue, by the address of the input."""
        return {target.address: target.slots for target in self.targets.values() if target.queued}

    @cached_property
    def targets(self) -> Mapping[int, Target]:
        """Every wire that leaves a stage, by number."""
        leaving = [ends for stage in self.stages for ends in stage.targets.values()]
        leaving += [ends for outputs in self.sources.values() for ends in outputs.values()]
        return {target.wire: target for ends in leaving for target in ends}
