"""Connections to PostgreSQL, and the conversions of values to its types."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit, urlunsplit

from dagkit_operators.libraries import library
from dagkit_operators.sql.connection import Connection, quoted
from dagkit_operators.tables.storage import table_mismatched

if TYPE_CHECKING:
    import pyarrow as pa


class Postgres(Connection):
    """A connection to PostgreSQL, or to a database that speaks its protocol."""

    mark = "$1"
    finding = "SELECT 1 WHERE to_regclass(?) IS NOT NULL"
    literal = "quote_literal({}::text)"

    def __init__(self, url: str, password: str | None) -> None:
        driver = library("adbc_driver_postgresql.dbapi", "sql")
        parts = urlsplit(url)
        address = parts.netloc
        if password is not None:
            user, _, host = parts.netloc.rpartition("@")
            address = f"{user}:{quote(password, safe='')}@{host}"
        super().__init__(url, lambda: driver.connect(urlunsplit(parts._replace(netloc=address))), driver)

    def table_name(self, table: str) -> str:
        return quoted(table)

    def conversions(self, table: str, schema: "pa.Schema", there: "pa.Schema") -> Mapping[str, str]:
        unlike = [field for field in schema if not _fits(field.type, there.field(field.name).type)]
        if not unlike:
            return {}
        types = self._types_of(table)
        for field in unlike:
            if _family(there.field(field.name).type):
                problem = f"the column {field.name} of {table} is of type {types[field.name]}"
                raise table_mismatched(f"{problem}, and records hold {field.type}")
        return {field.name: types[field.name] for field in unlike}

    def writable(self, rows: "pa.Table", there: "pa.Schema") -> "pa.Table":
        # PostgreSQL takes the bytes of another type without complaint.
        for index, field in enumerate(rows.schema):
            wanted = there.field(field.name).type
            if _family(wanted) and field.type != wanted:
                rows = rows.set_column(index, field.name, rows.column(index).cast(wanted))
        return rows

    def _types_of(self, table: str) -> Mapping[str, str]:
        """The types of the columns of a table in SQL."""
        found = self.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = CAST(? AS regclass) AND attnum > 0 AND NOT attisdropped",
            quoted(table),
        )
        return dict(found)


def _fits(kind: Any, wanted: Any) -> bool:
    """Whether values of one type can be written as another one, if their size allows it."""
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    if isinstance(wanted, pa.BaseExtensionType):
        return bool(pa.types.is_decimal(kind)) and getattr(wanted, "type_name", "") == "numeric"
    if pa.types.is_list(kind) and pa.types.is_list(wanted):
        return bool(kind.value_type == wanted.value_type)
    return _family(kind) != "" and _family(kind) == _family(wanted)


def _family(kind: Any) -> str:
    """The family of a type within which values are converted; empty for types that only the database converts."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    families = (
        ("integer", pa.types.is_integer),
        ("floating", pa.types.is_floating),
        ("text", lambda each: pa.types.is_string(each) or pa.types.is_large_string(each)),
        ("bytes", lambda each: pa.types.is_binary(each) or pa.types.is_large_binary(each)),
        ("boolean", pa.types.is_boolean),
        ("date", pa.types.is_date),
        ("zoned instant", lambda each: pa.types.is_timestamp(each) and each.tz is not None),
        ("instant", pa.types.is_timestamp),
    )
    return next((name for name, fits in families if fits(kind)), "")
