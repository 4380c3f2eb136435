"""Selecting rows while they are read: an expression of fields as a mask, computed by Arrow where it is exact."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from dagkit import Listed
from dagkit_operators.values.expressions import COMPARISONS, EXACT, Expression
from dagkit_operators.values.masks import mask_by_value

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

_TEXTS: Final = {"starts_with": "starts_with", "ends_with": "ends_with", "contains": "match_substring"}


def check_where(where: Any) -> Any:
    """Return a condition on fields. Raise ValueError for anything else."""
    if where is None or is_arrow(where):
        return where
    if not isinstance(where, Expression) or not where.is_condition:
        raise ValueError(f"{where!r} is no condition: write value.field('name') == …, or a pyarrow expression")
    names = list(names_in(where))
    if None in names or not names:
        raise ValueError(f"{where!r} tests a record as a whole; name its fields: value.field('name')")
    return where


def is_arrow(where: Any) -> bool:
    """Whether this is an expression of Arrow. Arrow is not loaded to find out."""
    return type(where).__module__.startswith("pyarrow") and type(where).__name__ == "Expression"


def names_in(where: Any) -> "Iterator[str | None]":
    """The fields that an expression names; None if it uses the whole record."""
    if not isinstance(where, Expression):
        return
    path = _path(where)
    if path is not None:
        yield path[0] if path else None
        return
    for operand in where.operands:
        yield from names_in(operand)


def arrow_of(where: Any, schema: "pa.Schema", *, negated: bool = False) -> "pc.Expression | None":
    """The condition as an expression of Arrow; None if Arrow would not compute exactly the same."""
    if is_arrow(where):
        return where
    match where.operation, where.operands:
        case "not", (Expression() as inner,):
            found = arrow_of(inner, schema, negated=True)
            return None if found is None else ~found
        case ("and" | "or") as joined, (Expression() as one, Expression() as other):
            sides = [arrow_of(side, schema, negated=negated) for side in (one, other)]
            if sides[0] is None or sides[1] is None:
                return None
            return sides[0] & sides[1] if joined == "and" else sides[0] | sides[1]
        case operation, (Expression() as field, constant):
            return _compared(operation, _path(field), constant, schema, negated=negated)
    return None


def _compared(
    operation: str, path: list[str] | None, constant: Any, schema: "pa.Schema", *, negated: bool
) -> "pc.Expression | None":
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling
    import pyarrow.compute as pc  # noqa: PLC0415

    kind = _type_at(path, schema) if path else None
    if not path or kind is None or isinstance(constant, Expression):
        return None
    field = pc.field(*path)
    if constant is None:
        return {"==": field.is_null(), "!=": field.is_valid()}.get(operation)
    # Each value is missing, for which only `!=` holds.
    if pa.types.is_null(kind):
        return pc.scalar(operation == "!=")
    if operation in _TEXTS and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        found = getattr(pc, _TEXTS[operation])(field, constant)
    elif operation in COMPARISONS and _is_exact(constant, kind):
        found = getattr(pc, COMPARISONS[operation])(field, pc.scalar(pa.scalar(constant, kind)))
    else:
        return None
    # A comparison with a missing value is false, and `!=` is true. Arrow makes it null, which a filter takes as false.
    # So nulls are replaced for `!=`, and under `not`, which would keep them null.
    return pc.coalesce(found, pc.scalar(operation == "!=")) if negated or operation == "!=" else found


def is_shown_by_statistics(where: Any, schema: "pa.Schema") -> bool:
    """Whether the least and the greatest value of each column show that a condition holds for no row.

    They leave out NaN. So they show nothing of a condition that holds for NaN, nor of an expression of Arrow that needs
    a column with floats.
    """
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    if not is_arrow(where):
        return not _holds_for_nan(where, schema, negated=False)
    others = pa.schema(
        [field for field in schema if not pa.types.is_floating(field.type) and not pa.types.is_nested(field.type)]
    )
    try:
        _filtered(pa.RecordBatch.from_pylist([], others), where)
    except pa.ArrowInvalid:  # it needs another column
        return False
    return True


def _holds_for_nan(where: Expression, schema: "pa.Schema", *, negated: bool) -> bool:
    """Whether some comparison within a condition, or its negation, holds for NaN in a column with floats."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    match where.operation, where.operands:
        case "not", (Expression() as inner,):
            return _holds_for_nan(inner, schema, negated=not negated)
        case "and" | "or", (Expression() as one, Expression() as other):
            return any(_holds_for_nan(side, schema, negated=negated) for side in (one, other))
    kind = _type_at(_path(where.operands[0]) or [], schema)
    return kind is not None and pa.types.is_floating(kind) and negated != (where.operation == "!=")


def _path(field: Any) -> list[str] | None:
    """The names that lead to a field, from the outermost; None if the expression is no field."""
    if field.operation == "value":
        return []
    if field.operation != "field":
        return None
    before = _path(field.operands[0])
    return None if before is None else [*before, field.operands[1]]


def _type_at(path: list[str], schema: "pa.Schema") -> "pa.DataType | None":
    import pyarrow as pa  # noqa: PLC0415 - as above

    kind: Any = pa.struct(list(schema))
    for name in path:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return kind


def _is_exact(constant: Any, kind: "pa.DataType") -> bool:
    """Whether Arrow compares values of this type with the constant as Python does."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if isinstance(constant, bool) != pa.types.is_boolean(kind) or isinstance(constant, float) > pa.types.is_floating(
        kind
    ):
        return False
    if pa.types.is_floating(kind) and (not pa.types.is_float64(kind) or abs(constant) > EXACT):
        return False
    try:
        return bool(pa.scalar(constant, kind).as_py() == constant)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False


def selected(where: Any, batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """The rows of a batch for which a condition holds."""
    known = arrow_of(where, batch.schema)
    if known is not None:
        return _filtered(batch, known)
    names = [name for name in dict.fromkeys(names_in(where)) if name is not None]
    return batch.filter(mask_by_value(where, Listed(batch.select(names).to_pylist())))


def _filtered(batch: "pa.RecordBatch", condition: "pc.Expression") -> "pa.RecordBatch":
    """The rows for which an expression of Arrow holds, computed in this thread."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    from pyarrow import acero  # noqa: PLC0415

    # `RecordBatch.filter` gives the work to a pool of threads. If all cores are busy, waiting takes longer.
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([batch])))
    filtered = acero.Declaration("filter", acero.FilterNodeOptions(condition), [source]).to_table(use_threads=False)
    (only,) = filtered.combine_chunks().to_batches() or [batch.slice(0, 0)]
    return only
