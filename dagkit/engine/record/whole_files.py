"""Which output files are complete after a window: those whose elements were read to their end. Pure."""

from bisect import bisect_right
from collections.abc import Container, Iterable, Sequence
from collections.abc import Set as AbstractSet
from math import inf

from dagkit.engine.files.staging import NAMED_BY_BLOCK, Part, by_file, element_text, file_shared
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.work.item import WorkItem
from dagkit.errors import RunFailure, Scene, printable


def refuse_late(before: Checkpoint, worked_on: AbstractSet[int], parts: Iterable[Part]) -> None:
    """Raise if a piece belongs to a file that may be in place already: it would replace the earlier pieces."""
    read = [part for part in parts if part.element_id is not None and is_among(part.element_id, before.output.read)]
    still = worked_on | before.queue.elements_among(elements_of(read))
    for part in read:
        if part.element_id not in still:
            raise RunFailure(
                f"{part.operator} wrote to {printable(part.file)} in window {part.window}, and element "
                f"{part.element_id}, with which the file is complete, was read to its end before: an operator before "
                f"{part.operator} holds items from window to window",
                "write them to files that belong to no element",
                Scene(part.operator, part.window),
                code="piece-late",
            )


def refuse_shared(before: Iterable[Part], parts: Sequence[Part], operators: Container[str]) -> None:
    """Raise unless every written file belongs to one operator, and to one block or none."""
    written = {part.file for part in parts}
    for file, pieces in by_file(part for part in [*before, *parts] if part.file in written).items():
        writers = sorted({piece.operator for piece in pieces if piece.operator in operators})
        if len(writers) > 1:
            raise file_shared(file, f"by {writers[0]} and {writers[1]}", "give each of them a file_path of its own")
        blocks = sorted({element_text(piece.element_id) for piece in pieces if piece.part})
        if len(blocks) > 1:
            raise file_shared(file, f"by {pieces[0].operator} for {blocks[0]} and {blocks[1]}", NAMED_BY_BLOCK)


def with_numbers(stretches: Sequence[tuple[int, int]], more: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return numbers as sorted half-open ranges; no two touch."""
    found: list[tuple[int, int]] = []
    for start, end in sorted([*stretches, *((number, number + 1) for number in more)]):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return tuple(found)


def is_among(number: int, stretches: Sequence[tuple[int, int]]) -> bool:
    """Whether a number lies in one of the ranges."""
    place = bisect_right(stretches, (number, inf)) - 1
    return place >= 0 and number < stretches[place][1]


def elements_of(work: Iterable[WorkItem | Part]) -> set[int]:
    """The numbers of the elements that work, or pieces of files, belong to."""
    return {item.element_id for item in work if item.element_id is not None}


def settled(parts: Sequence[Part], open_elements: set[int], *, last: bool = False) -> tuple[list[Part], list[Part]]:
    """Return the pieces of complete files, and the pieces of incomplete files.

    The last window, after which no more input is expected for now, completes every file that belongs to no block.
    """

    def is_whole(pieces: Sequence[Part]) -> bool:
        if any(piece.finished for piece in pieces):
            return True
        blocks = {piece.element_id for piece in pieces if piece.element_id is not None}
        return not blocks & open_elements if blocks else last

    whole = {file for file, pieces in by_file(parts).items() if is_whole(pieces)}
    return [p for p in parts if p.file in whole], [p for p in parts if p.file not in whole]
