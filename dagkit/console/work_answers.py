"""Answers about work: decisions, splits, what is not done, and input files."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache, partial

from dagkit.api.stats import by_unit
from dagkit.console.run_folder import RunFolder
from dagkit.console.tables import Asked, Row, page_of
from dagkit.engine.parts.requests import Retry
from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Decided, Scaled, Split
from dagkit.engine.record.backlogs import ScalingDecision
from dagkit.engine.record.history import Window, newest_checkpoint, window_that_took
from dagkit.engine.record.status_file import this_process
from dagkit.engine.record.work_history import ListedWork, lost_in, work_left
from dagkit.engine.work.split import PUT_OFF
from dagkit.ground.amounts import BYTE
from dagkit.ground.urls import absolute
from dagkit.ledger import Ledger
from dagkit.runs.inventory.arrivals import Noted
from dagkit.runs.inventory.listing import FoundFiles, described
from dagkit.runs.inventory.readings import Reading, readings

_FIRST = ("set aside", "suspect", "pending", "found", "followed")
"""The states of work that is not done, in the order of the table."""


def decisions(window: Window) -> Iterator[Row]:
    """The decisions of a window, newest first: about partitions, and changes on request."""
    for fact in reversed(window.checkpoint.facts):
        if isinstance(fact, Scaled):
            decision = ScalingDecision(window.checkpoint.window, fact)
            yield {"fact": "scaled", **decision.as_json(), "inputs": None}
        elif not isinstance(fact, Split | Decided):
            yield {"window": window.checkpoint.window, **fact.model_dump(mode="json")}


def splits(window: Window) -> Iterator[Row]:
    """The splits of a window, newest first."""
    for fact in reversed(window.checkpoint.facts):
        if isinstance(fact, Split):
            yield {"window": window.checkpoint.window, **fact.as_row()}


def cuts(window: Window) -> Iterator[Row]:
    """The splits of a window except those of work that only waits for more: endless work has one in each window."""
    return (row for row in splits(window) if row["why"] != PUT_OFF)


def split_sums(rows: Iterable[Row], units: Mapping[str, str]) -> list[Row]:
    """The splits of windows by their reason, with what was handed over; `units` has those of operators."""
    by_reason: dict[str, list[Row]] = {}
    for row in rows:
        by_reason.setdefault(row["why"], []).append(row)
    return [
        {
            "why": why,
            "splits": len(of_reason),
            "handed": by_unit(
                (units.get(Address(row["into"]).operator, BYTE), row["end"] - row["at"])
                for row in of_reason
                if row["end"] is not None and row["at_share"] is None
            ),
        }
        for why, of_reason in by_reason.items()
    ]


def given_up(window: Window) -> Iterator[Row]:
    """The work that was given up with a window."""
    return (item.as_json() for item in lost_in(window.checkpoint))


def work(folder: RunFolder) -> list[Row]:
    """The work that was set aside or waits."""
    with folder.ledger() as ledger:
        rows = [] if ledger is None else [row_of_work(item) for item in work_left(ledger)]
    return sorted(rows, key=lambda row: _FIRST.index(row["state"]))


def row_of_work(work: ListedWork) -> Row:
    """Work as a row of the table: what has no end is `followed`, and does not wait for a window."""
    row = work.as_json()
    is_followed = work.state == "pending" and work.place.end is None
    return {**row, "state": "followed", "reason": "it has no end: what is added to it is read"} if is_followed else row


def retry_of(row: Mapping[str, str]) -> Retry:
    """The request to put work that was set aside back into the queue: a row of the table of work."""
    start, end = row.get("start", ""), row.get("end", "")
    return Retry(
        names=(row["source"],) if row.get("source") else (),
        start=int(start) if start.isdecimal() else 0,
        end=int(end) if end.isdecimal() else None,
        operator=row.get("operator") or None,
        by=this_process().user,
    )


class Files:
    """The input files that the ledger names, with what became of each."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._noted: Noted | None = None
        """What was read of the windows: a later answer reads only those since then."""

    def page(self, asked: Asked) -> Row:
        """A page of the files, the last found first, with sums over all of them by state."""
        ledger, sums = self._folder.own_ledger(), dict[str, Row]()
        rows = iter(()) if ledger is None else self._rows(ledger, sums)
        page = page_of(rows, replace(asked, sort=asked.sort or "-found"))
        if ledger is not None:
            took = cache(partial(window_that_took, ledger))
            page["rows"] = [
                {**row, "window": None if row["block"] is None else took(row["finder"], row["block"])}
                for row in page["rows"]
            ]
        return {**page, "sums": sums}

    def _rows(self, ledger: Ledger, sums: dict[str, Row]) -> Iterator[Row]:
        units = self._folder.units_found()
        files = FoundFiles.of(ledger, newest_checkpoint(ledger), self._noted)
        self._noted = files.noted
        for file, found in described(files, ledger):
            left = files.left_of(file, found)
            size = None if found is None else found.bytes
            unit = units.get(file.finder, BYTE)
            of_state = sums.setdefault(file.state, {"files": 0, "bytes": 0, "left": {}})
            of_state["files"] += 1
            of_state["bytes"] += (size or 0) if unit == BYTE else 0
            of_state["left"] = by_unit((*of_state["left"].items(), (unit, left)))
            yield {
                "path": file.path,
                "state": file.state,
                "reason": file.reason,
                "finder": file.finder,
                "found": None if found is None else found.at.isoformat(),
                "block": None if found is None else found.block,
                "bytes": size if unit == BYTE else None,
                "left": left,
                "unit": unit,
            }


def one_file(folder: RunFolder, path: str) -> Row:
    """All that the ledger records of one input file, or of another source with a name."""
    ledger, units = folder.own_ledger(), folder.units_found()
    read = [] if ledger is None else readings(ledger, path) or readings(ledger, absolute(path))
    return {"path": path, "readings": [_reading(reading, units) for reading in read]}


def _reading(reading: Reading, units: Mapping[str, str]) -> Row:
    found = None if reading.found is None else reading.found.isoformat()
    return {**asdict(reading), "found": found, "unit": units.get(reading.finder, BYTE)}
