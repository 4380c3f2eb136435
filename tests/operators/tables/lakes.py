"""Tables of Delta and Iceberg for tests, and applications that write to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable as Delta
from deltalake import write_deltalake
from pyiceberg.catalog import load_catalog

from dagkit import Dag, PortContext
from dagkit_operators import DeltaWriter, IcebergWriter, Map
from dagkit_operators.tables.delta import DeltaTable
from dagkit_operators.tables.iceberg import IcebergTable
from tests.engine.cast import Digits, Draw, Ranges


@dataclass(frozen=True)
class Row:
    number: int
    text: str | None


LOOKS = ((4, 3), (5,), (2, 2))
ALL = [{"number": number, "text": f"row {number}"} for number in range(16)]


class Lake(Protocol):
    """A table of either format."""

    def writer(self, **properties: Any) -> DeltaWriter[Any] | IcebergWriter[Any]: ...
    def system(self) -> Any: ...
    def rows(self) -> list[Mapping[str, Any]]: ...
    def add(self, rows: pa.Table) -> None:
        """Add rows as another program does."""

    def windows(self) -> list[str]:
        """The window that each version names."""


@dataclass
class DeltaLake:
    home: Path

    @property
    def uri(self) -> str:
        return str(self.home / "table")

    def writer(self, **properties: Any) -> DeltaWriter[Any]:
        return DeltaWriter(**{"uri": self.uri, "record_type": Row, **properties})

    def system(self) -> DeltaTable:
        return DeltaTable(self.uri, partition_by=(), settings={}, schema=None, creates_table=True)

    def rows(self) -> list[Mapping[str, Any]]:
        rows = pa.table(Delta(self.uri).to_pyarrow_table())
        return sorted(rows.to_pylist(), key=lambda row: row["number"])

    def add(self, rows: pa.Table) -> None:
        write_deltalake(self.uri, rows, mode="append")

    def windows(self) -> list[str]:
        return [str(each["operation"]) for each in Delta(self.uri).history() if each["operation"] == "WRITE"]


@dataclass
class IcebergLake:
    home: Path

    @property
    def catalog(self) -> dict[str, str]:
        return {"type": "sql", "uri": f"sqlite:///{self.home}/catalog.db", "warehouse": f"file://{self.home}/lake"}

    def writer(self, **properties: Any) -> IcebergWriter[Any]:
        return IcebergWriter(**{"catalog": self.catalog, "table": "sales.numbers", "record_type": Row, **properties})

    def system(self) -> IcebergTable:
        return IcebergTable(self.catalog, "sales.numbers", schema=None, creates_table=True)

    def rows(self) -> list[Mapping[str, Any]]:
        rows = load_catalog(**self.catalog).load_table("sales.numbers").scan().to_arrow()
        return sorted(rows.to_pylist(), key=lambda row: row["number"])

    def add(self, rows: pa.Table) -> None:
        load_catalog(**self.catalog).load_table("sales.numbers").append(rows)

    def windows(self) -> list[str]:
        snapshots = load_catalog(**self.catalog).load_table("sales.numbers").snapshots()
        return [each.summary.additional_properties["dagkit.window"] for each in snapshots if each.summary]


LAKES: Mapping[str, Callable[[Path], Lake]] = {"delta": DeltaLake, "iceberg": IcebergLake}


def row(number: int) -> Row:
    return Row(number, f"row {number}")


def rows_written(
    lake: Lake,
    looks: tuple[tuple[int, ...], ...] = LOOKS,
    make: Callable[[int], Row] = row,
    **properties: Any,
) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        ranges = dag.add_operator("ranges", Ranges(looks=looks))
        digits = dag.add_operator("digits", Digits())
        each = dag.add_operator("each", Map(make))
        write = dag.add_operator("write", lake.writer(**properties))
        dag.set_input_port_attribute(each.input, PortContext.PARTITION_PARALLEL, True)
        dag.add_stream("blocks", ranges.blocks, digits.blocks)
        dag.add_stream("numbers", digits.numbers, each.input)
        dag.add_stream("rows", each.output, write.input)

    return draw
