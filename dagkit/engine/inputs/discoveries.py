"""Discoveries: the items that an input operator emitted in one look, and their form in its root chain."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from dagkit.api.controls import Stamped, by_name
from dagkit.api.ports import output_ports
from dagkit.api.work import is_sourced
from dagkit.engine.program.codec import JsonCodec
from dagkit.engine.program.program import Program
from dagkit.errors import RunFailure, Scene
from dagkit.ledger import EmittedItem
from dagkit.ledger.format.recorded_work import block_row
from dagkit.ranges import OFFSET_INFINITY

_CONTROL = "#control"
"""Marks the rows of control tuples; port names are Python identifiers and cannot contain this character."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """One item and its port."""

    port: str
    item: Any


@dataclass(frozen=True, slots=True)
class Discovery:
    """The items that an input operator emitted in one look, in order."""

    operator: str
    emitted: tuple[Emitted, ...]
    seq: int = -1
    """The number of the root block that stores it."""
    rows: Sequence[JsonValue] = field(default=(), compare=False, repr=False)
    """Its rows, if this launch has just stored it."""


class DiscoveryCodec:
    """Converts the discoveries of an application to rows of root chains and back."""

    def __init__(self, program: Program, named: Collection[str]) -> None:
        self.named = named
        """Input operators whose name is part of their source names, because two operators may read the same file."""
        self._written = {port: JsonCodec(".".join(port), payload) for port, payload in program.outputs.items()}
        self._queued = {
            (name, port)
            for name, outputs in program.sources.items()
            for port, targets in outputs.items()
            if any(target.queued for target in targets)
        }
        """The outputs that lead to splittable operators: their items are work."""
        self._controls = {
            (name, port): by_name(declared.controls)
            for name in program.sources
            for port, declared in output_ports(type(program.operators[name][0])).items()
        }

    def source(self, operator: str, source: str) -> str:
        """The name of an operator's source in the ledger."""
        return f"{operator}: {source}" if operator in self.named else source

    def rows(self, discovery: Discovery, first: int) -> Iterator[JsonValue]:
        """Return the rows of a discovery, numbered from `first` on."""
        for offset, emitted in enumerate(discovery.emitted, start=first):
            yield self._row(discovery.operator, emitted, offset)

    def discovery(self, operator: str, seq: int, rows: Sequence[Mapping[str, Any]]) -> Discovery:
        """Rebuild a discovery from its rows."""
        return Discovery(operator, tuple(self._emitted(operator, row) for row in rows), seq)

    def written_as(self, discovery: Discovery, index: int, payload: Any) -> JsonValue:
        """The JSON of an item of a discovery that is work, if its row holds it as this payload; else None."""
        port = discovery.operator, discovery.emitted[index].port
        if not discovery.rows or self._written[port].payload != payload:
            return None
        row = discovery.rows[index]
        extra = row.get("extra") if isinstance(row, dict) else None
        return extra.get("element") if isinstance(extra, dict) else None

    def _row(self, operator: str, emitted: Emitted, offset: int) -> JsonValue:
        item = emitted.item
        if isinstance(item, Stamped):
            return self._control_row(operator, emitted.port, item, offset)
        written = self._written[operator, emitted.port].of(item)
        if (operator, emitted.port) in self._queued and is_sourced(item):
            extra: dict[str, JsonValue] = {"port": emitted.port, "element": written}
            end = None if item.end >= OFFSET_INFINITY else item.end
            source, size = self.source(operator, item.source), item.source_size
            return block_row(source, item.start, end, size, extra)
        return EmittedItem(offset=offset, port=emitted.port, item=written).as_json()

    def _control_row(self, operator: str, port: str, stamped: Stamped, offset: int) -> JsonValue:
        name, control = type(stamped.control).__qualname__, stamped.control
        if name not in self._controls[operator, port]:
            problem = f"{operator}.{port} sent the control tuple {name}, which it does not declare"
            raise RunFailure(
                problem, f"write OutputPort(…, controls=({name},))", Scene(operator), code="control-undeclared"
            )
        data = JsonCodec(f"{operator}.{port}", type(control)).of(control)
        item: JsonValue = {"control": name, "stamp": stamped.stamp, "data": data}
        return EmittedItem(offset=offset, port=f"{port}{_CONTROL}", item=item).as_json()

    def _emitted(self, operator: str, row: Mapping[str, Any]) -> Emitted:
        if row.get("port", "").endswith(_CONTROL):
            port, item = row["port"].removesuffix(_CONTROL), row["item"]
            control = JsonCodec(port, self._controls[operator, port][item["control"]]).back(item["data"])
            return Emitted(port, Stamped(control, item["stamp"]))
        if "source" in row:
            port = row["extra"]["port"]
            return Emitted(port, self._written[operator, port].back(_element_in(row)))
        return Emitted(row["port"], self._written[operator, row["port"]].back(row.get("item")))


def _element_in(row: Mapping[str, Any]) -> JsonValue:
    """The element of a row; until November 2026, a row held the fields of a block beside its port."""
    extra: dict[str, JsonValue] = dict(row["extra"])
    if "element" in extra:
        return extra["element"]
    del extra["port"]
    return {**extra, "start": row["start"], "end": OFFSET_INFINITY if row.get("end") is None else row["end"]}
