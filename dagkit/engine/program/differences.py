"""Differences of JSON values: what changed between two values, and two changes as one. Pure.

A change is a JSON object itself, in one of these forms:

    {"=": value}                            the new value
    {"+": tail}                             a text grew by this
    {"-": [names], "*": {name: change}}     of an object, these names went; these changed or came, in this order
    {"<": [[from, to], {"=": [...]}, …]}    a list consists of these stretches of the earlier one, and these elements

Applying a change copies what it changes and shares the rest. Values that are the same object cost no comparison below
them, so the cost of a difference depends on the values that were made again, not on the size of the whole.
"""

import json
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import is_
from typing import Any, Final

from dagkit.ground.overlays import Overlay

Change = Mapping[str, Any]
"""A change of a JSON value."""
Piece = list[int] | Mapping[str, list[Any]]
"""The bounds of a stretch of a list, or new elements."""

NEW: Final = "="
GREW: Final = "+"
GONE: Final = "-"
CHANGED: Final = "*"
PIECES: Final = "<"

_COMPARED = 1024
"""How many elements of two lists are compared in one call."""
_NEAR = 64
"""How many elements lie at most between two stretches of a list that both stayed."""


def difference(before: Any, after: Any) -> Change | None:
    """Return the change from one value to another; None if they are equal."""
    if before is after:
        return None
    if isinstance(after, Overlay) and (layer := after.change_since(before)) is not None:
        changed = {name: {NEW: value} for name, value in layer.set.items()}
        return _object_change(layer.gone, changed) if layer.gone or changed else None
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return _of_objects(before, after)
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        return None if len(before) == len(after) and _are_same(before, after) else _of_lists(before, after)
    if before == after and _token(before) == _token(after):
        return None
    if isinstance(before, str) and isinstance(after, str) and before and after.startswith(before):
        return {GREW: after[len(before) :]}
    return {NEW: after}


def applied(before: Any, change: Change) -> Any:
    """Return the value after a change."""
    if NEW in change:
        return change[NEW]
    if GREW in change:
        assert isinstance(before, str), "only a text grows"
        return before + change[GREW]
    if PIECES in change:
        assert isinstance(before, list | tuple), "only a list has stretches"
        return [
            each
            for piece in change[PIECES]
            for each in (piece[NEW] if isinstance(piece, Mapping) else before[piece[0] : piece[1]])
        ]
    assert isinstance(before, Mapping), "only an object has names"
    if isinstance(before, Overlay):
        gone = set(change.get(GONE, ()))
        changed = change[CHANGED].items()
        return before.changed(gone, {n: applied(None if n in gone else before.get(n), each) for n, each in changed})
    after = dict(before)
    for name in change.get(GONE, ()):
        after.pop(name, None)
    for name, inner in change[CHANGED].items():
        after[name] = applied(after.get(name), inner)
    return after


def composed(first: Change, second: Change) -> Change:
    """Return the change that has the effect of one change and then another."""
    if NEW in second:
        return second
    if NEW in first:
        return {NEW: applied(first[NEW], second)}
    if GREW in second:
        return {GREW: first[GREW] + second[GREW]}
    if PIECES in second:
        return {PIECES: joined_pieces(_pieces_of(first[PIECES], second[PIECES]))}
    gone = dict.fromkeys([*first.get(GONE, ()), *second.get(GONE, ())])
    dropped = set(second.get(GONE, ()))
    changed = {name: inner for name, inner in first[CHANGED].items() if name not in dropped}
    for name, inner in second[CHANGED].items():
        changed[name] = composed(changed[name], inner) if name in changed else inner
    return _object_change(gone, changed)


def _of_objects(before: Mapping[str, Any], after: Mapping[str, Any]) -> Change | None:
    """The change of an object, which keeps the order of names: a name behind one that came or moved comes, too."""
    gone = [name for name in before if name not in after]
    changed: dict[str, Change] = {}
    places = {name: place for place, name in enumerate(before)}
    stays, reached = True, -1
    for name, value in after.items():
        place = places.get(name, -1)
        stays = stays and place > reached
        if stays:
            reached = place
            if before[name] is not value and (inner := difference(before[name], value)) is not None:
                changed[name] = inner
            continue
        if place >= 0:
            gone.append(name)
        changed[name] = {NEW: value}
    return _object_change(gone, changed) if gone or changed else None


def _object_change(gone: Any, changed: Mapping[str, Change]) -> Change:
    return {GONE: list(gone), CHANGED: changed} if gone else {CHANGED: changed}


def _of_lists(before: Sequence[Any], after: Sequence[Any]) -> Change:
    """Find the stretches that stayed, from the end on."""
    pieces: list[Piece] = []
    end, place, near = len(before), len(after), len(after)
    while (found := _last_shared(before, end, after, place, near)) is not None:
        behind, (end, at) = place, found
        length = _length_of_same(before, end, after, at)
        pieces += [{NEW: list(after[at:behind])}, [end - length, end]]
        end, place, near = end - length, at - length, _NEAR
    if not pieces:
        return {NEW: after}
    pieces.append({NEW: list(after[:place])})
    return {PIECES: joined_pieces(reversed(pieces))}


def _last_shared(
    before: Sequence[Any], end: int, after: Sequence[Any], place: int, near: int
) -> tuple[int, int] | None:
    """The places behind an element that both have, among the last in one list and the `near` last in the other."""
    last = {_token(before[at]): at + 1 for at in range(max(0, end - _NEAR), end)}
    for at in range(place - 1, max(0, place - near) - 1, -1):
        if (behind := last.get(_token(after[at]))) is not None:
            return behind, at + 1
    return None


def _token(element: Any) -> str:
    """The JSON of an element: equal only for equal ones. An object that is no JSON equals only itself."""
    return json.dumps(element, default=id)


def _length_of_same(one: Sequence[Any], end: int, other: Sequence[Any], other_end: int) -> int:
    """How many elements before these places are the same in both."""
    length, most = 0, min(end, other_end)
    step = _COMPARED
    while length < most and step:
        step = min(step, most - length)
        low, other_low = end - length - step, other_end - length - step
        if _are_same(one[low : low + step], other[other_low : other_low + step]):
            length += step
        else:
            step //= 2
    return length


def _are_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether two lists are equal, also in the types of their values: 1 and True are equal in Python."""
    return all(map(is_, some, others)) or (list(some) == list(others) and _token(list(some)) == _token(list(others)))


def _pieces_of(first: Sequence[Piece], second: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces of a list that consists of pieces of one that consists of pieces."""
    lengths = [len(piece[NEW]) if isinstance(piece, Mapping) else piece[1] - piece[0] for piece in first]
    begins = list(accumulate(lengths, initial=0))
    for piece in second:
        if isinstance(piece, Mapping):
            yield piece
            continue
        low, high = piece
        at = bisect(begins, low) - 1
        while at < len(first) and begins[at] < high:
            inner, start, end = first[at], max(low, begins[at]) - begins[at], min(high, begins[at + 1]) - begins[at]
            yield {NEW: inner[NEW][start:end]} if isinstance(inner, Mapping) else [inner[0] + start, inner[0] + end]
            at += 1


def joined_pieces(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces of a list without empty ones; those that touch are one."""
    found: list[Piece] = []
    for piece in pieces:
        last = found[-1] if found else None
        if isinstance(piece, Mapping):
            if isinstance(last, Mapping):
                last[NEW].extend(piece[NEW])
            elif piece[NEW]:
                found.append({NEW: list(piece[NEW])})
        elif piece[0] < piece[1]:
            if isinstance(last, list) and last[1] == piece[0]:
                found[-1] = [last[0], piece[1]]
            else:
                found.append(piece)
    return found
