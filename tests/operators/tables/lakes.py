"""Tables of Delta and Iceberg for tests, and applications that write to them."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable as Delta
from deltalake import write_deltalake
from pyiceberg.catalog import load_catalog

from dagkit_operators import DeltaWriter, IcebergWriter
from dagkit_operators.tables.delta import DeltaTable
from dagkit_operators.tables.iceberg import IcebergTable
from tests.operators.sql.sql_cast import LOOKS, Row, row, rows_into


def all_rows(count=16):
    return [{"number": number, "text": f"row {number}"} for number in range(count)]


class Lake:
    def __init__(self, home: Path) -> None:
        self.home = home

    def rows(self) -> list[dict]:
        return sorted(self.table().to_pylist(), key=lambda row: row["number"])


class DeltaLake(Lake):
    @property
    def uri(self) -> str:
        return str(self.home / "table")

    def writer(self, **properties):
        return DeltaWriter(**{"uri": self.uri, "record_type": Row, **properties})

    def system(self) -> DeltaTable:
        return DeltaTable(self.writer(record_type=None))

    def table(self) -> pa.Table:
        return pa.table(Delta(self.uri).to_pyarrow_table())

    def add(self, rows: pa.Table) -> None:
        """Add rows as another program does."""
        write_deltalake(self.uri, rows, mode="append")

    def windows(self) -> list[str]:
        """Something for each version with a window."""
        return [each["operation"] for each in Delta(self.uri).history() if each["operation"] == "WRITE"]


class IcebergLake(Lake):
    @property
    def catalog(self) -> dict[str, str]:
        return {"type": "sql", "uri": f"sqlite:///{self.home}/catalog.db", "warehouse": f"file://{self.home}/lake"}

    @property
    def loaded(self):
        return load_catalog(**self.catalog).load_table("sales.numbers")

    def writer(self, **properties):
        return IcebergWriter(**{"catalog": self.catalog, "table": "sales.numbers", "record_type": Row, **properties})

    def system(self) -> IcebergTable:
        return IcebergTable(self.writer(record_type=None))

    def table(self) -> pa.Table:
        return self.loaded.scan().to_arrow()

    def add(self, rows: pa.Table) -> None:
        """Add rows as another program does."""
        self.loaded.append(rows)

    def windows(self) -> list[str]:
        """The window that each version names."""
        snapshots = self.loaded.snapshots()
        return [each.summary.additional_properties["dagkit.window"] for each in snapshots if each.summary]


LAKES = {"delta": DeltaLake, "iceberg": IcebergLake}


def rows_written(lake, looks=LOOKS, make=row, **properties):
    return rows_into(lake.writer(**properties), looks, make)
