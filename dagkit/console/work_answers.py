"""Answers about work: decisions, splits, what is not done, items, and input files."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice

from dagkit.console.run_folder import RunFolder
from dagkit.console.window_answers import Row, items_of, page
from dagkit.engine.program.facts import Decided, Scaled, Split
from dagkit.engine.record.backlogs import ScalingDecision
from dagkit.engine.record.history import Window
from dagkit.engine.record.work_history import lost_in, work_left
from dagkit.ground.urls import absolute
from dagkit.runs.inventory.listing import recorded
from dagkit.runs.inventory.readings import Reading, readings

MOST_WORK = 500
"""The highest number of ranges of work that one answer lists."""
_NOTHING: Row = {"rows": [], "next": None}


def decisions(folder: RunFolder, before: int | None, limit: int) -> Row:
    """A page of decisions: about partitions, and changes on request."""

    def rows(window: Window) -> Iterator[Row]:
        for fact in reversed(window.checkpoint.facts):
            if isinstance(fact, Scaled):
                made = ScalingDecision(window.checkpoint.window, fact).as_json()
                yield {"fact": "scaled", **made, "inputs": None}
            elif not isinstance(fact, Split | Decided):
                yield {"window": window.checkpoint.window, **fact.model_dump(mode="json")}

    with folder.windows() as chain:
        return _NOTHING if chain is None else page(chain, before, limit, rows)


def splits(folder: RunFolder, before: int | None, limit: int) -> Row:
    """A page of splits."""

    def rows(window: Window) -> Iterator[Row]:
        for fact in reversed(window.checkpoint.facts):
            if isinstance(fact, Split):
                yield {"window": window.checkpoint.window, **fact.as_row()}

    with folder.windows() as chain:
        return _NOTHING if chain is None else page(chain, before, limit, rows)


def items(folder: RunFolder, before: int | None, limit: int) -> Row:
    """A page of row accounts: the items of each operator in each window."""

    def rows(window: Window) -> Iterator[Row]:
        if window.checkpoint.rows:
            yield {"window": window.checkpoint.window, "operators": items_of(window.checkpoint)}

    with folder.windows() as chain:
        return _NOTHING if chain is None else page(chain, before, limit, rows)


def work(folder: RunFolder) -> Row:
    """The work that waits or was set aside: of each state at most MOST_WORK ranges, and how many there are."""
    counts: dict[str, int] = {}
    listed: list[Row] = []
    with folder.ledger() as ledger:
        for each in work_left(ledger) if ledger is not None else ():
            counts[each.state] = counts.get(each.state, 0) + 1
            if counts[each.state] <= MOST_WORK:
                listed.append(each.as_json())
    return {"counts": counts, "rows": listed}


def given_up(folder: RunFolder, before: int | None, limit: int) -> Row:
    """A page of work that was given up."""
    with folder.windows() as chain:
        if chain is None:
            return _NOTHING
        return page(chain, before, limit, lambda window: [each.as_json() for each in lost_in(window.checkpoint)])


def files(folder: RunFolder, after: int, limit: int, like: str) -> Row:
    """A page of the input files that the ledger names, with what became of each, in the order of finding them."""
    ledger = folder.own_ledger()
    found = recorded(ledger) if ledger is not None else iter(())
    chosen = (file for file in found if like in file.path)
    listed = [asdict(file) for file in islice(chosen, after, after + limit + 1)]
    return {"rows": listed[:limit], "next": after + limit if len(listed) > limit else None}


def one_file(folder: RunFolder, path: str) -> Row:
    """All that the ledger records of one input file."""
    ledger = folder.own_ledger()
    read = [] if ledger is None else readings(ledger, absolute(path))
    return {"path": path, "readings": [_reading(each) for each in read]}


def _reading(reading: Reading) -> Row:
    found = None if reading.found is None else reading.found.isoformat()
    return {**asdict(reading), "found": found}
