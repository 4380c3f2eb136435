"""Fields of records that the type of the records does not name: counted by window, and warned of once in a launch."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dagkit import Operator, auto_metric
from dagkit_operators.native.json_members import MemberNames, others_of

if TYPE_CHECKING:
    from dagkit_operators.native.bytewise import Bytes

MOST_NAMES = 8
"""The most ignored fields that a metric names."""
PROBLEM = (
    "fields were not read, since the type of the records does not name them: {names_ignored} (values: "
    "{fields_ignored:,})"
)


class Ignored(NamedTuple):
    """Fields of records that were not read, since the type of the records does not name them."""

    values: int
    """How many values they had in the records; a null in JSON is none."""
    names: Sequence[str]
    """Some of the fields."""


def first_names(lists: Sequence[str]) -> str:
    """The first different names of several lists, whose names are separated by commas."""
    names = [*dict.fromkeys(name for names in lists for name in names.split(", ") if name)]
    return ", ".join([*names[:MOST_NAMES], *["…"] * (len(names) > MOST_NAMES)])


class IgnoresFields(Operator):
    """An operator that makes records of a type, and leaves out fields that the type does not name."""

    fields_ignored = auto_metric(
        0,
        warning=f"{PROBLEM}\n  help: add the fields to record_type or types to read them; to leave out all other "
        "fields, without a count, set columns",
    )
    """Values of fields that the type of the records does not name; in JSON, a null is no value."""
    names_ignored = auto_metric("", aggregators=[first_names])
    """Some of these fields."""

    def note_ignored(self, ignored: Ignored) -> None:
        """Count fields that were not read."""
        self.fields_ignored += ignored.values
        self.names_ignored = first_names([self.names_ignored, ", ".join(ignored.names)])


def other_members(data: "Bytes", texts: Callable[[], Iterable[str | bytes]], names: MemberNames) -> Ignored:
    """The members of JSON objects that are not named. `data` has all texts, which a parser has accepted."""
    others = others_of(data, names)
    if others is not None:
        return Ignored(*others)
    found: list[str] = []
    for text in texts():
        names.add_others(json.loads(text, object_pairs_hook=tuple, parse_int=str), found)
    return Ignored(len(found), [*dict.fromkeys(found)])
