"""Answers about windows: pages of them, one of them, and series over all; about chains of blocks; and the overview."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, islice

from dagkit.api.operators import DROPPED
from dagkit.api.stats import by_unit
from dagkit.console.run_folder import NOT_READ, RunFolder
from dagkit.console.status_answers import status_of
from dagkit.console.tables import ChainRows, Row
from dagkit.engine.files.staging import by_file
from dagkit.engine.program.address import Address
from dagkit.engine.record.history import Window, block_of, stride, window_at, window_that_took, windows_between
from dagkit.ground.amounts import BYTE
from dagkit.ledger import Chain, Ledger, Span
from dagkit.ledger.chain.contents import rows_of
from dagkit.ledger.format.recorded_work import InputWork
from dagkit.ledger.format.span_sets import length_of

POINTS = 256
"""The highest number of windows in a series, apart from the last ones."""
LISTED = 200
"""The highest number of ranges of work, and of files, that the answer about one window lists."""


_FIGURES = (
    "window",
    "waiting",
    "waiting_positions",
    "positions",
    "items",
    "rejected",
    "slots_seconds",
    "commit_seconds",
)
"""The figures of a window that have a series."""


def table_of_all(folder: RunFolder) -> ChainRows:
    """The table of all windows."""

    def rows_in(chain: Chain, first: int, last: int) -> Iterator[tuple[int, list[Row]]]:
        units = folder.units()
        for window in windows_between(chain, first, last):
            yield window.record.seq, [row_of(window, units)]

    return ChainRows(folder.windows, rows_in)


def row_of(window: Window, units: Mapping[str, str]) -> Row:
    """A window in one line, given the unit of the positions of each operator."""
    checkpoint, works = window.checkpoint, window.work
    times, began = checkpoint.times, checkpoint.times.began
    counts, waiting = checkpoint.rows, [span for work in works for span in work.pending]
    rows = counts.operators.values()
    in_units = [(units.get(Address(work.input).operator, BYTE), work) for work in works]
    read = [(unit, _read_in(work)) for unit, work in in_units if unit != NOT_READ]
    return {
        "window": checkpoint.window,
        "block": window.record.seq,
        "committed": window.committed.isoformat(),
        "launched": None if times.launched is None else times.launched.isoformat(),
        "seconds": _seconds(began, window.committed),
        "slots_seconds": _seconds(began, times.reported),
        "commit_seconds": _seconds(times.reported, window.committed),
        "positions": sum(positions for _, positions in read),
        "read": by_unit(read),
        "waiting": len(waiting),
        "waiting_positions": _positions(waiting),
        "pending": by_unit((unit or BYTE, _positions(work.pending)) for unit, work in in_units),
        "items": sum(each.received for each in rows),
        "rejected": sum(each.rejected for each in rows),
        "files": len({part.file for part in window.output.finished}),
        "decisions": len(checkpoint.facts),
        "adds_up": all(each.adds_up for each in rows),
    }


def one_window(folder: RunFolder, window_id: int) -> Row | None:
    """All about one window; None if there is none of this number."""
    with folder.windows() as chain:
        window = None if chain is None else window_of(chain, window_id)
        if chain is None or window is None:
            return None
        written = rows_of(chain.data(window.record) or b"")
    checkpoint, block = window.checkpoint, window.record.block
    return row_of(window, folder.units()) | {
        "hash": window.record.hash,
        "previous_hash": block.prev_block_hash,
        "inputs": [
            {"input": work.input}
            | {
                name: [str(span) for span in spans[:LISTED]]
                for name, spans in (("given", work.given), ("found", work.found), ("consumed", work.consumed))
            }
            | {"waiting": len(work.pending), "waiting_positions": _positions(work.pending)}
            for work in checkpoint.work.inputs or ()
        ],
        "written": [
            {"operator": row["operator"], "file": row["file"], "bytes": row["length"]}
            for row in written[:LISTED]
            if row.get("length")  # a piece without bytes only completes its file
        ],
        "finished": [
            {"file": file, "bytes": sum(piece.length for piece in pieces)}
            for file, pieces in islice(sorted(by_file(window.output.finished).items()), LISTED)
        ],
        "facts": [fact.model_dump(mode="json") for fact in checkpoint.facts],
    }


def _seconds(begin: datetime | None, end: datetime | None) -> float | None:
    return None if begin is None or end is None else round((end - begin).total_seconds(), 3)


def window_of(chain: Chain, window_id: int) -> Window | None:
    """The window of this number; None if there is none."""
    seq = block_of(chain, window_id)
    return None if seq is None else window_at(chain, seq)


def items_of(window: Window) -> list[Row]:
    """The items of each operator in one window."""
    counts = window.checkpoint.rows
    return [
        {
            "window": window.checkpoint.window,
            "operator": name,
            "received": counted.received,
            "sent": counted.passed_on,
            "rejected": counted.rejected,
            "dropped": counted.dropped,
            "left_out": {metric: count for metric, count in counted.left_out.items() if metric != DROPPED},
            "adds_up": None if counted.rule is None else counted.adds_up,
        }
        for name, counted in counts.operators.items()
    ]


def item_sums(rows: Iterable[Row]) -> list[Row]:
    """The items of each operator in windows, as sums; `uneven` is how many windows do not add up."""
    sums: dict[str, Counter[str]] = {}
    judged = set()
    for row in rows:
        figures = {name: row[name] or 0 for name in ("received", "sent", "rejected", "dropped")}
        sums.setdefault(row["operator"], Counter()).update(windows=1, uneven=row["adds_up"] is False, **figures)
        if row["adds_up"] is not None:
            judged.add(row["operator"])
    return [
        {"operator": name, **each, "adds_up": each["uneven"] == 0 if name in judged else None}
        for name, each in sums.items()
    ]


def launches(rows: Iterable[Row]) -> list[Row]:
    """The launches of windows that are given newest first, as sums over their windows; the newest launch first."""
    sums = []
    for launched, of_launch in groupby(rows, lambda row: row["launched"]):
        windows = list(of_launch)
        took = [row["seconds"] for row in windows if row["seconds"] is not None]
        totals = {name: sum(row[name] for row in windows) for name in ("positions", "items", "rejected", "files")}
        newest, end = windows[0], datetime.fromisoformat(windows[0]["committed"])
        sums.append(
            {
                "launched": launched,
                "first": windows[-1]["window"],
                "last": newest["window"],
                "windows": len(windows),
                "seconds": None if launched is None else _seconds(datetime.fromisoformat(launched), end),
                "window_seconds": round(sum(took) / len(took), 3) if took else None,
                "longest_seconds": max(took, default=None),
                "read": by_unit((unit, amount) for row in windows for unit, amount in row["read"].items()),
                **totals,
                "waiting_positions": newest["waiting_positions"],
            }
        )
    return sums


def compared(first: Window, second: Window) -> list[Row]:
    """The items of each operator in two windows, side by side."""
    sides = [{row["operator"]: row for row in items_of(window)} for window in (first, second)]
    return [
        {"operator": name}
        | {
            f"{figure}_{side}": found.get(name, {}).get(figure)
            for side, found in zip(("first", "second"), sides, strict=True)
            for figure in ("received", "sent", "rejected")
        }
        for name in dict.fromkeys((*sides[0], *sides[1]))
    ]


@dataclass
class Series:
    """Backlog, work and partitions over time: a sample of all windows, which grows with the ledger."""

    folder: RunFolder
    _known: dict[int, Row | None] = field(default_factory=dict)
    """What was read of the sampled blocks."""

    def answer(self) -> Row:
        """The columns of the series, oldest window first."""
        with self.folder.windows() as chain:
            # Within the block, since its lock also protects `_known`: Starlette answers requests in several threads.
            points = [] if chain is None else list(self._points(chain))
        changing = sorted({name for point in points for name in point["partitions"]})
        launched = self.folder.launched() if changing else None  # reading a large plan takes long
        counts = {} if launched is None else {operator.name: operator.count for operator in launched.plan.operators}
        return {
            **{name: [point[name] for point in points] for name in ("at", "launched", *_FIGURES)},
            "partitions": {
                name: [point["partitions"].get(name, counts.get(name)) for point in points] for name in changing
            },
        }

    def _points(self, chain: Chain) -> Iterator[Row]:
        # The step is a power of two, so that half of the sample stays when the chain outgrows it.
        step = stride(chain.head.seq + 1, POINTS)
        units = self.folder.units()
        sample = [*range(0, chain.head.seq, step), chain.head.seq]
        self._known = {seq: point for seq, point in self._known.items() if seq % step == 0}
        for seq in sample:
            if seq not in self._known:
                window = window_at(chain, seq)
                self._known[seq] = None if window is None else _point(window, units)
            point = self._known[seq]
            if point is not None:
                yield point


def _point(window: Window, units: Mapping[str, str]) -> Row:
    row, times, changes = row_of(window, units), window.checkpoint.times, window.checkpoint.changes
    launched = times.launched
    return {
        "at": window.committed.timestamp(),
        "launched": None if launched is None else launched.timestamp(),
        **{name: row[name] for name in _FIGURES},
        "partitions": {name: len(given.keys) for name, given in changes.partitions.items()},
    }


def _read_in(work: InputWork) -> int:
    """How many positions of an input a window read."""
    return (0 if work.folded is None else work.folded.positions) + _positions(work.consumed)


def _positions(spans: Iterable[Span]) -> int:
    return sum(length_of(span) for span in spans if span.end is not None and not span.shares)


def blocks_in(chain: Chain, first: int, last: int) -> Iterator[tuple[int, list[Row]]]:
    """The blocks of a chain, each in one line. One is `linked` if it holds the hash of the one before it."""
    before = chain.read(first - 1).hash if first else None
    for record in chain.records(first, last):
        block = record.block
        event = block.as_json()["event"]
        data, checkpoint = event.get("newData"), event.get("newCheckpoint")
        interval = None if data is None else data["offsetInterval"]
        row = {
            "block": record.seq,
            "hash": record.hash,
            "previous_hash": block.prev_block_hash,
            "linked": block.prev_block_hash == before,
            "written": block.system_time.isoformat(),
            "event": event["kind"],
            "records": None if interval is None else interval["end"] - interval["start"] + 1,
            "data": None if data is None else data["size"],
            "state": None if checkpoint is None else checkpoint["size"],
        }
        before = record.hash
        yield record.seq, [row]


def window_of_block(ledger: Ledger, chain: str, row: Row) -> int | None:
    """The window of a block of the application's chain, or the one that was given the work of another block."""
    if row["event"] == "AddData":
        return window_that_took(ledger, chain, row["block"])
    window = window_at(ledger.chain(chain), row["block"]) if row["event"] == "ExecuteTransform" else None
    return None if window is None else window.checkpoint.window


def overview(folder: RunFolder, *, allows_control: bool) -> Row:
    """The overview. It reads the last window only, and the record of the launch only if no driver wrote a status."""
    run = folder.run()
    known = folder.launched() if run is None else None
    with folder.windows() as chain:
        last = None if chain is None else window_at(chain, chain.head.seq)
    name = "" if chain is None else chain.name
    launch: Row = {"application": name, "launched": None, "version": None}
    if run is not None:
        seen = run.launch
        launch = {"application": seen.application, "launched": seen.since.isoformat(), "version": seen.version}
    elif known is not None:
        launch = {"application": known.plan.application, "launched": known.at.isoformat(), "version": known.version}
    return {
        **launch,
        "path": folder.place,
        "status": status_of(run),
        "allows_control": allows_control,
        "last": None if last is None else row_of(last, folder.units()),
    }
