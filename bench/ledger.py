"""Checks that resuming costs the same after a million windows as after ten. Counts decide; times are only printed.

Chains are built with real appends that check every rule, in `--in FOLDER` without syncing (`durable=False`). The
default is /dev/shm if it exists, because on a disk the build would measure its inodes. The rates of the disk itself,
with and without syncing, are measured separately. At each length, the benchmark opens the chain cold, plans, appends
and seeks, and counts the blocks that each operation reads. For comparison, it reads the chain as it would be necessary
without carried offsets: back from the head to the last block with the value.
"""

import argparse
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dagkit.ledger import Chain, Ledger, WorkBlock, lines_of, slice_of, transform_of
from dagkit.ledger.format.segment import SEGMENT_SIZE
from dagkit.ledger.stores import LocalStore, MemoryStore, Store

BUSY, IDLE, APPLICATION = "busy", "idle", "application"

_SHARED = "/dev/shm"  # noqa: S108 - a folder of ours is made in it
_SHORTEST = 100
"""Blocks of the shortest chain that is measured."""

Period = Callable[[int], int | None]

TWELVE = "data in 12 blocks"
SHAPES: dict[str, Period] = {
    "data in every block": lambda _: 1,
    "data in one of 100": lambda _: 100,
    TWELVE: lambda length: length // 12,
    "data never": lambda _: None,
}
TWO_INPUTS = "two inputs, one idle"


@dataclass(frozen=True, slots=True)
class Cost:
    """The blocks that one operation read, and its time."""

    blocks_read: int
    millis: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One chain at one length."""

    shape: str
    blocks: int
    open: Cost
    plan_next: Cost
    append: Cost
    seek_offset: Cost | None
    seek_time: Cost
    without_carried: Cost
    appends_per_second: float
    bytes_on_disk: int
    files: int
    rss_megabytes: float


def measure(
    lengths: list[int], folder: Path | None, say: Callable[[str], None] = lambda _: None, only: str | None = None
) -> list[Measured]:
    """Measure every shape, or only one, at every length; in a folder, or in memory without one."""
    found = []
    for shape in [s for s in (*SHAPES, TWO_INPUTS) if only in (None, s)]:
        for measured in _shape(shape, lengths, folder):
            say(_row(measured))
            found.append(measured)
    return found


def unsteady(found: list[Measured]) -> list[str]:
    """The operations whose block counts depend on the length, or for seeking grow faster than a logarithm."""
    wrong = []
    for shape in dict.fromkeys(m.shape for m in found):
        same = [m for m in found if m.shape == shape]
        for operation in ("open", "plan_next", "append"):
            counts = [getattr(m, operation).blocks_read for m in same]
            if len(set(counts)) > 1:
                wrong.append(f"{shape}: {operation} reads {counts} blocks")
    for m in found:
        most = max((cost.blocks_read for cost in (m.seek_offset, m.seek_time) if cost is not None), default=0)
        if most > 3 * (m.blocks.bit_length() + 2):
            wrong.append(f"{m.shape}: seeking in {m.blocks} blocks reads {most}")
    return wrong


def _shape(shape: str, lengths: list[int], folder: Path | None) -> Iterator[Measured]:
    """Chains of one shape; one chain grows through all lengths, unless its shape depends on the length."""
    batches = [[length] for length in lengths] if shape == TWELVE else [lengths]
    for batch in batches:
        with _store(folder) as store:
            done = 0
            for length in batch:
                ledger = Ledger.create(store)  # a new ledger, because the measurement appended a block
                grow = _two_inputs(ledger) if shape == TWO_INPUTS else _root(ledger, SHAPES[shape](batch[-1]))
                chain = next(grow)
                start = time.perf_counter()
                while chain.standing.next_seq < length:
                    next(grow)
                rate = (chain.standing.next_seq - done) / (time.perf_counter() - start)
                done = chain.standing.next_seq
                yield _measured(shape, chain.name, store, rate)


def _root(ledger: Ledger, period: int | None) -> Iterator[Chain]:
    """Append to a root chain, one block at a step, with data in one of `period` blocks."""
    chain = ledger.root(BUSY)
    yield chain
    while True:
        seq = chain.standing.next_seq
        add_next(chain, with_data=period is not None and seq % period == period // 2)
        yield chain


def add_next(chain: Chain, *, with_data: bool) -> None:
    """Append an AddData: a range of a file, or only a watermark."""
    planned = chain.plan_next()
    if with_data:
        offset = planned.next_offset
        content = lines_of([WorkBlock(source="a.txt", start=offset * 10, end=offset * 10 + 10).as_json()])
        chain.append(planned.add_data(slice_of(content, offset, 1)), [content], planned=planned)
    else:
        chain.append(planned.add_data(watermark=datetime.now(UTC)), planned=planned)


def _two_inputs(ledger: Ledger) -> Iterator[Chain]:
    """Append to a derivative chain, one window at a step; one input always has new data, the other never."""
    busy, idle = ledger.root(BUSY), ledger.root(IDLE)
    if idle.standing.data is None:
        add_next(idle, with_data=True)
    app = ledger.application(APPLICATION, [BUSY, IDLE], transform_of("bench", "1"))
    yield app
    while True:
        add_next(busy, with_data=True)
        execute_next(app)
        yield app


def execute_next(chain: Chain) -> None:
    """Append a window that consumes all available blocks."""
    planned = chain.plan_next()
    content = lines_of([{"part": "x", "records": 3}])
    chain.append(planned.execute(slice_of(content, planned.next_offset, 3)), [content], planned=planned)


def _measured(shape: str, name: str, store: Store, rate: float) -> Measured:
    ledger = Ledger.open(store)
    chain = ledger.chain(name)
    inputs = [ledger.chain(i) for i in (BUSY, IDLE)] if name == APPLICATION else []
    if inputs:
        add_next(inputs[0], with_data=True)

    def cost(act: Callable[[], Any], opened: list[Chain] | None = None) -> Cost:
        chains = [chain, *inputs] if opened is None else opened
        before = sum(c.log.blocks_read for c in chains)
        start = time.perf_counter()
        act()
        millis = (time.perf_counter() - start) * 1000
        return Cost(sum(c.log.blocks_read for c in chains) - before, round(millis, 3))

    fresh: list[Chain] = []

    def opened() -> None:
        other = Ledger.open(store)
        fresh.extend([other.chain(n) for n in ([name, BUSY, IDLE] if inputs else [name])])

    start = time.perf_counter()
    opened()
    opening = Cost(sum(c.log.blocks_read for c in fresh), round((time.perf_counter() - start) * 1000, 3))
    length = chain.standing.next_seq

    def append() -> None:
        execute_next(chain) if inputs else add_next(chain, with_data=False)

    planning = cost(chain.plan_next)
    append()  # not timed: the first append after a thousand packs them
    first = chain.read(min(10, chain.head.seq)).block.system_time
    offset = chain.standing.offset
    sizes = [f.stat().st_size for f in store.root.rglob("*") if f.is_file()] if isinstance(store, LocalStore) else []
    return Measured(
        shape=shape,
        blocks=length,
        open=opening,
        plan_next=planning,
        append=cost(append),
        seek_offset=None if offset is None else cost(lambda: chain.seek_offset(offset // 2)),
        seek_time=cost(lambda: chain.seek_time(first)),
        without_carried=cost(lambda: _walk(chain, idle=bool(inputs))),
        appends_per_second=round(rate),
        bytes_on_disk=sum(sizes),
        files=len(sizes),
        rss_megabytes=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    )


def _walk(chain: Chain, *, idle: bool) -> int | None:
    """Read back from the head to the last block with the values that a writer needs, as without carried offsets."""
    last = chain.head.seq
    while last >= 0:
        first = max(0, last - last % SEGMENT_SIZE)
        for seq, line in reversed(list(chain.log.lines(first, last))):
            event = json.loads(line)["block"]["event"]
            if (
                (len(event.get("queryInputs", ())) > 1 and "newOffset" in event["queryInputs"][1])
                if idle
                else ("newData" in event)
            ):
                chain.log.blocks_read -= seq - first  # read with its segment but not needed
                return seq
        last = first - 1
    return None


def rate_of(folder: Path, appends: int, *, durable: bool) -> float:
    """The appends per second, synced if `durable`."""
    with _folder(folder) as place:
        chain = Ledger.create(LocalStore(place, durable=durable)).root(BUSY)
        start = time.perf_counter()
        for _ in range(appends):
            add_next(chain, with_data=True)
        return round(appends / (time.perf_counter() - start))


@contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="ledger-bench-", dir=parent))
    try:
        yield place
    finally:
        shutil.rmtree(place)


@contextmanager
def _store(folder: Path | None) -> Iterator[Store]:
    if folder is None:
        yield MemoryStore()
        return
    with _folder(folder) as place:
        yield LocalStore(place, durable=False)


_HEADER = (
    f"{'shape':22} {'blocks':>8} | blocks read: {'open':>4} {'plan':>4} {'append':>6} {'seek':>4} {'time':>4} "
    f"{'walk':>8} | ms: {'open':>7} {'plan':>6} {'append':>6} {'walk':>9} | {'/s':>6} {'MB':>6} {'files':>6} {'RSS':>6}"
)


def _row(m: Measured) -> str:
    seek = "-" if m.seek_offset is None else m.seek_offset.blocks_read
    return (
        f"{m.shape:22} {m.blocks:>8} | {'':12} {m.open.blocks_read:>4} {m.plan_next.blocks_read:>4} "
        f"{m.append.blocks_read:>6} {seek:>4} {m.seek_time.blocks_read:>4} {m.without_carried.blocks_read:>8} | "
        f"{'':3} {m.open.millis:>7.2f} {m.plan_next.millis:>6.2f} {m.append.millis:>6.2f} "
        f"{m.without_carried.millis:>9.1f} | {m.appends_per_second:>6.0f} {m.bytes_on_disk / 1e6:>6.0f} "
        f"{m.files:>6} {m.rss_megabytes:>6.0f}"
    )


def lengths_upto(longest: int) -> list[int]:
    """The lengths to measure: the longest, and a tenth, hundredth and thousandth of it if long enough."""
    return [longest // part for part in (1000, 100, 10, 1) if longest // part >= _SHORTEST]


def _longest(text: str) -> int:
    longest = int(text)
    if len(lengths_upto(longest)) < 2:
        raise argparse.ArgumentTypeError(f"must be at least {10 * _SHORTEST}: a single length does not show growth")
    return longest


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="python -m bench ledger",
        description="Build chains of up to a million blocks and count the blocks that opening, planning, appending and "
        "seeking read. Exits with 1 if a count grows with the chain. A full run takes 20 to 30 minutes and up to "
        "2.6 GB; a run to 10000 takes about 15 seconds.",
    )
    options.add_argument("--longest", type=_longest, default=10**6, metavar="N", help="blocks of the longest chain")
    options.add_argument("--only", choices=[*SHAPES, TWO_INPUTS], help="only chains of this shape")
    options.add_argument("--in", dest="folder", type=Path, default=Path(_SHARED), help="where to build the chains")
    options.add_argument("--json", action="store_true", help="print one JSON document at the end")
    return options


def main(arguments: list[str]) -> int:
    """Measure and print; return 1 if a count is not constant."""
    said = _options().parse_args(arguments)
    disk = Path(tempfile.gettempdir())
    folder = said.folder if said.folder.is_dir() else disk

    def say(text: str) -> None:
        if not said.json:
            print(text, flush=True)

    start = time.perf_counter()
    rates = {"durable": rate_of(disk, 300, durable=True), "not durable": rate_of(disk, 5000, durable=False)}
    say(f"appends on {disk}: " + ", ".join(f"{name} {rate:.0f}/s" for name, rate in rates.items()) + f"\n{_HEADER}")
    found = measure(lengths_upto(said.longest), folder, say, said.only)
    wrong = unsteady(found)
    if said.json:
        body = {"appends_per_second_on_disk": rates, "measured": [asdict(m) for m in found], "unsteady": wrong}
        print(json.dumps({"schema": "dagkit.bench.ledger/1", **body}, indent=2))
    for line in wrong:
        say(f"NOT CONSTANT: {line}")
    if not wrong:
        say(f"every count is constant; {time.perf_counter() - start:.0f} s in all")
    return 1 if wrong else 0
