"""Source code of classes for records, with types that fit the first records."""

import json
import keyword
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from dagkit.errors import printable

_FORMS = {
    # Any 18 digits fit into 64 bits, and 19 may not.
    "int": re.compile(r"-?(0|[1-9]\d{0,17})"),  # with a leading zero it is a code, such as a postcode
    "float": re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d{1,3})?"),
    "bool": re.compile(r"true|false", re.IGNORECASE),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "datetime": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?"),
}
"""The form of a text for a value of each type."""
_MOST_UNFIT = 0.1
"""The share of the values that need not fit the type of a column."""
NULLS = ("NA", "N/A", "null", "NULL", "None", "nan", "NaN", "-")
"""Texts that stand for a missing value in a column whose other values are no text."""

_NUMBERS, _OR_NONE = (int, float), " | None"
_TYPES: dict[type, str] = {kind: kind.__name__ for kind in (bool, int, float, str, bytes, date, datetime, Decimal)}


class Classes:
    """Source code of classes for records. Those of records within others come first."""

    def __init__(self, *, with_defaults: bool = False) -> None:
        """With defaults, a field that may be missing has the default None."""
        self._texts: dict[str, str] = {}
        self._with_defaults = with_defaults
        self.remarks: list[str] = []
        """Remarks on values that do not fit the types."""

    @property
    def text(self) -> str:
        return "".join(f"\n\n{text}\n" for text in self._texts.values())

    @property
    def imports(self) -> str:
        """What the classes need of the standard library."""
        times = [name for name in ("date", "datetime") if re.search(rf": {name}\b", self.text)]
        return "".join(
            [
                "from dataclasses import dataclass\n" if "@dataclass" in self.text else "",
                f"from datetime import {', '.join(times)}\n" if times else "",
                "from decimal import Decimal\n" if ": Decimal" in self.text else "",
                "from typing import TypedDict\n" if "TypedDict(" in self.text else "",
            ]
        )

    def add_rows(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[str]], about: str) -> set[str]:
        """Add the class of rows of texts, as CSV has them.

        Return the texts that stand for missing values besides the empty one.
        """
        values = list(zip(*rows, strict=True)) or [()] * len(columns)
        hints, nulls, empty = {}, set(), []
        for column, texts in zip(columns, values, strict=True):
            kind, unfit = _type_of([text for text in texts if text and text not in NULLS])
            missing = {"", *(NULLS if kind != "str" else ())}.intersection(texts)
            hints[column] = _optional(kind, bool(missing))
            nulls |= missing - {""}
            empty += [column] if missing else []
            self._remark(column, "row", kind, unfit, len(texts))
        self._add(name, hints, about)
        if empty:
            names = ", ".join(map(printable, empty))
            self.remarks.append(f"{names}: empty in some rows, which pass with None; remove `| None` to reject them")
        return nulls

    def add_records(
        self, name: str, records: Sequence[Mapping[str, Any]], about: str, missing: Container[str] = (), path: str = ""
    ) -> str:
        """Add the class of records with these values, and those of the records within. Return its name.

        Fields in `missing` may be missing, also if none of these records lacks them. `path` leads to the records.
        """
        fields = dict.fromkeys(field for record in records for field in record)
        values = {field: [record.get(field) for record in records] for field in fields}
        hints = {
            field: self._hint(name, field, [*values[field], None] if field in missing else values[field], path)
            for field in fields
        }
        return self._add(name, hints, about)

    def _hint(self, within: str, field: str, values: Sequence[Any], path: str) -> str:
        present = [value for value in values if value is not None]
        ((kind, _), *_) = Counter(map(type, present)).most_common(1) or [(str, 0)]
        alike: list[Any] = [value for value in present if isinstance(value, (int, float) if kind in _NUMBERS else kind)]
        if kind is dict:
            words = re.findall(r"[A-Za-z0-9]+", field)
            inner = within + "".join(word[:1].upper() + word[1:] for word in words)
            hint = self.add_records(inner, alike, f"`{field}` of {within}.", path=f"{path}{field}.")
        elif kind is list:
            hint = f"list[{self._hint(within, field, [item for items in alike for item in items], path)}]"
        else:
            # Programs write whole numbers of a column of floats without a point.
            is_float = kind is int and any(isinstance(value, float) for value in present)
            hint = "float" if is_float else _TYPES.get(kind, "str")
        self._remark(path + field, "record", hint, len(present) - len(alike), len(present))
        return _optional(hint, len(present) < len(values) or not values)

    def _remark(self, field: str, what: str, hint: str, unfit: int, count: int) -> None:
        if unfit:
            self.remarks.append(f"{field}: {unfit:,} of {count:,} values are no {hint}; their {what}s are rejected")

    def _add(self, name: str, hints: Mapping[str, str], about: str) -> str:
        while name in self._texts:
            name += "_"
        if all(field.isidentifier() and not keyword.iskeyword(field) for field in hints):
            of_missing = " = None" if self._with_defaults else ""
            fields = "".join(
                f"\n    {field}: {hint}{of_missing if hint.endswith(_OR_NONE) else ''}" for field, hint in hints.items()
            )
            options = "frozen=True, kw_only=True" if of_missing else "frozen=True"
            self._texts[name] = f'@dataclass({options})\nclass {name}:\n    """{in_docstring(about)}"""\n{fields}'
        else:  # a dataclass cannot have a field with a space in its name
            fields = "".join(f"\n    {json.dumps(field, ensure_ascii=False)}: {hint}," for field, hint in hints.items())
            self._texts[name] = f'# {printable(about)}\n{name} = TypedDict("{name}", {{{fields}\n}})'
        return name


def in_docstring(text: str) -> str:
    """A text as it stands in a docstring: a path or the name of a table may hold quotes and backslashes."""
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')


def _optional(hint: str, may_be_missing: bool) -> str:  # noqa: FBT001 - a value, not a switch
    return f"{hint}{_OR_NONE}" if may_be_missing else hint


def _type_of(texts: Sequence[str]) -> tuple[str, int]:
    """The first type that nearly all texts fit, and how many do not."""
    for kind, form in _FORMS.items():
        unfit = sum(not (form.fullmatch(text) and _exists(kind, text)) for text in texts)
        if texts and unfit <= _MOST_UNFIT * len(texts):
            return kind, unfit
    return "str", 0


def _exists(kind: str, text: str) -> bool:
    """Whether there is such a day or time: there is no 31st of February."""
    try:
        return kind not in ("date", "datetime") or bool(datetime.fromisoformat(text))
    except ValueError:
        return False
