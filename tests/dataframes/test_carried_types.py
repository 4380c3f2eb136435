"""Which types of Spark a `SparkSource` carries, and what becomes of their values."""

import datetime as dt
import zoneinfo
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from pyspark.testing.objects import ExamplePoint, ExamplePointUDT

from dagkit import Config, Dag
from dagkit.errors import RunFailure
from dagkit.launching import Machine, launch
from dagkit_operators import Map, ParquetReader, PartWriter, SparkSource
from tests.backends.cast import chained

pytestmark = pytest.mark.spark

NOON = dt.datetime(2026, 1, 2, 12, 0, 0, 678901, dt.UTC)
CARRIED: dict[str, tuple[str, Any]] = {
    "boolean": ("true", True),
    "tiny": ("cast(-1 as tinyint)", -1),
    "small": ("cast(300 as smallint)", 300),
    "integer": ("cast(-2147483648 as int)", -(1 << 31)),
    "long": ("9223372036854775807", (1 << 63) - 1),
    "float": ("cast(1.5 as float)", 1.5),
    "infinite": ("cast('-Infinity' as double)", float("-inf")),
    "decimal": (
        "cast('-12345678901234567890.123456789012345678' as decimal(38,18))",
        Decimal("-12345678901234567890.123456789012345678"),
    ),
    "text": ("'é\\n😀'", "é\n😀"),
    "collated": ("'x' collate UTF8_LCASE", "x"),
    "bytes": ("X'00ff'", b"\x00\xff"),
    "date": ("date'0001-01-01'", dt.date(1, 1, 1)),
    "instant": ("timestamp'2026-01-02 12:00:00.678901Z'", NOON),
    "never": ("timestamp'9999-12-31 23:59:59Z'", dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)),
    "local": ("timestamp_ntz'2026-01-02 12:00:00.678901'", NOON.replace(tzinfo=None)),
    "empty": ("cast(null as int)", None),
    "struct": ("named_struct('a', 1, 'b', named_struct('c', 'x'))", {"a": 1, "b": {"c": "x"}}),
    "array": ("array(named_struct('a', 1), null)", [{"a": 1}, None]),
    "map": ("map('k', array(1), 'l', null)", [("k", [1]), ("l", None)]),
}
REFUSED = {
    "void": ("null", "void"),
    "days": ("interval '1' day", "interval day"),
    "months": ("interval '1' month", "interval month"),
    "interval": ("make_interval(1, 2)", "interval"),
    "time": ("time'03:04:05'", "time(6)"),
    "variant": ("parse_json('1')", "variant"),
    "geo": ("ST_GeogFromWKB(X'0101000000000000000000F03F0000000000000040')", "geography(4326)"),
    "plane": ("ST_GeomFromWKB(X'0101000000000000000000F03F0000000000000040')", "geometry(0)"),
    "nothing": ("struct()", "struct<>"),
    "inside.a.b": ("named_struct('a', named_struct('b', null, 'c', 1))", "void"),
    "list[]": ("array(make_interval(1))", "interval"),
    "keys.key": ("map(time'03:04:05', 1)", "time(6)"),
    "values.value[]": ("map(1, array(parse_json('1')))", "variant"),
}


def read(frame: DataFrame, home: Path) -> Any:
    """The only row of a frame, as an operator gets it."""

    def show(dag: Dag, conf: Config) -> None:
        writer = PartWriter(file_path=str(home / "out"))
        chained(dag, Rows=SparkSource(frame), Reader=ParquetReader(), Show=Map[Any, str](repr), Writer=writer)

    launch(show, machine=Machine("reference"), path=home / "app", until="once")
    (part,) = (home / "out").iterdir()
    return eval(part.read_text(), {"datetime": dt, "zoneinfo": zoneinfo, "Decimal": Decimal, "inf": float("inf")})  # noqa: S307 - our own


def test_values_of_every_carried_type_come_back_as_they_were(spark, tmp_path):
    before = spark.conf.get("spark.sql.parquet.outputTimestampType")
    selected = ", ".join(f"{sql} as {name}" for name, (sql, _) in CARRIED.items())
    row = read(spark.sql(f"select {selected}"), tmp_path)
    assert row == {name: value for name, (_, value) in CARRIED.items()}
    assert row["instant"].tzinfo is not None
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == before


def test_every_other_type_is_refused_with_its_column(spark, tmp_path):
    columns = {path.partition(".")[0].partition("[")[0]: sql for path, (sql, _) in REFUSED.items()}
    frame = spark.sql(f"select 1 as kept, {', '.join(f'{sql} as {name}' for name, sql in columns.items())}")
    with pytest.raises(RunFailure, match="columns-uncarried") as refused:
        read(frame, tmp_path)
    listed = ", ".join(f"{path} ({kind})" for path, (_, kind) in REFUSED.items())
    assert str(refused.value).splitlines()[0].partition(" cannot carry: ")[2].startswith(listed)


def test_a_type_of_a_user_is_refused(spark, tmp_path):
    frame = spark.createDataFrame([(ExamplePoint(1.0, 2.0),)], StructType().add("point", ExamplePointUDT()))
    with pytest.raises(RunFailure, match=r"point \(udt\)"):
        read(frame, tmp_path)
