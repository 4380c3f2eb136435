"""Replaying: run an earlier window again, with the present code, beside the run, and compare what it writes.

The ledger names the work that a window consumed, and holds the items that it was given and the state before it.
Operators in the middle of the graph that found work run again first, to find its elements. So the window runs once more
in the reference backend, which stages its output in a folder of its own; nothing is committed, published or delivered.
Only the operators' own code could have effects elsewhere.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dagkit.api.files import content_of_piece
from dagkit.backends.reference import ReferenceBackend
from dagkit.compiler import Compilation
from dagkit.engine.files.staging import Part, StagingPlace, by_file, in_order
from dagkit.engine.inputs.driver_input import delivered
from dagkit.engine.inputs.watermark_flow import WatermarkFlow
from dagkit.engine.parts.running_plan import RunningPlan
from dagkit.engine.program.address import Address
from dagkit.engine.program.masking import Masking
from dagkit.engine.program.program import Launch, Program
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.history import Window, history, own_windows
from dagkit.engine.record.redistribute import first_of_delays, redistribute_state, restored, state_by_slot
from dagkit.engine.record.source_names import is_named
from dagkit.engine.record.work_records import work_by_slot
from dagkit.engine.record.written_file import discovered, place_of, stretches
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.summary import ProgramSummary
from dagkit.engine.worker.outbox import Sent
from dagkit.engine.worker.protocol import Attempt, Leaving, WindowTask
from dagkit.errors import RunFailure, Scene, printable
from dagkit.ledger import ExecuteTransform, Ledger, Record
from dagkit.runs.window_again import NotFoundAgain, PastWindow, RunAgain, WindowAgain


def _replay_refused(problem: str, remedy: str, scene: Scene) -> RunFailure:
    """A window cannot run again, or what it wrote cannot be compared; nothing was changed."""
    return RunFailure(problem, remedy, scene, code="replay-refused")


@dataclass(frozen=True, slots=True)
class Compared:
    """The rows of one file, or of all files of an operator that are of no block: of a window and its replay."""

    operator: str
    file: str | None
    """None: all files of the operator together, whose rows have no order."""
    before: tuple[bytes, ...]
    """The rows that are there."""
    now: tuple[bytes, ...]
    """The rows that the replay wrote."""

    @property
    def same(self) -> int:
        """How many rows are in both."""
        return (Counter(self.before) & Counter(self.now)).total()

    @property
    def is_equal(self) -> bool:
        return self.before == self.now


def windows_of(ledger: Ledger, path: str) -> list[int]:
    """The windows that read a file."""
    checkpoints = (window.checkpoint for window in own_windows(ledger, json.dumps(path)[1:-1].encode()))
    return [each.window for each in checkpoints if any(is_named(span.source, path) for span in each.work.all_consumed)]


def replayed(compilation: Compilation, ledger: Ledger, place: str, window: int, shadow: Path) -> Iterator[Compared]:
    """Run a window again, staging below the folder `shadow`, and compare its output file by file."""
    before, entry, completed = _around(ledger, window)
    plan = RunningPlan.resumed(compilation, before)
    with Masking.of(lambda: plan.program).masked():
        written = _run(plan, ledger, before, entry, shadow)
    mine = [part for part in entry.output.pieces if part.window == window]
    kept, made = _rows(plan.program, mine, completed, place), _rows(plan.program, written, {}, str(shadow))
    for operator, file in sorted({*kept, *made}, key=lambda key: (key[0], key[1] or "")):
        rows = (tuple(found.get((operator, file), ())) for found in (kept, made))
        yield Compared(operator, file, *(each if file is not None else tuple(sorted(each)) for each in rows))


def _around(ledger: Ledger, window: int) -> tuple[Checkpoint, Window, Mapping[str, Sequence[Part]]]:
    """The checkpoint before a window, the window, and the pieces of the files that it and later ones completed."""
    # blocks that are no window come before each window, so its block has a higher number than the window
    entries = [entry for entry in history(ledger, max(0, window - 1)) if entry.checkpoint.window >= window - 1]
    found = [entry for entry in entries if entry.checkpoint.window >= window]
    if window < 1 or not found:
        last = entries[-1].checkpoint.window if entries else 0
        raise _replay_refused(
            f"the ledger has no window {window}" + (f": its windows end at {last}" if last else ""),
            "choose one of `dagkit ledger show`",
            Scene(),
        )
    before = Checkpoint() if window == 1 else entries[0].checkpoint
    return before, found[0], by_file(part for entry in found for part in entry.output.finished)


def _run(plan: RunningPlan, ledger: Ledger, before: Checkpoint, entry: Window, shadow: Path) -> list[Part]:
    """Run the window and return the pieces that it stages."""
    program, window = plan.program, entry.checkpoint.window
    kept, progress = before.operators, entry.checkpoint.progress
    summary, flow = ProgramSummary(program), WatermarkFlow.of(program)
    again = WindowAgain(RunAgain.of(plan.compilation), ledger, PastWindow(window, entry.checkpoint.work, before))
    work = {into: [_work(again, into, entry.checkpoint)] for into in summary.elements}
    task = WindowTask(
        window_id=window,
        arriving=tuple(_arriving(ledger, program, before, entry)),
        work=work_by_slot(work, summary.addresses),
        state=state_by_slot(program, redistribute_state(program, kept.state)),
        committed=window - 1,
        last=progress.drained,
        launch=Launch(str(shadow), str(Path.cwd())),
        attempt=Attempt(
            StagingPlace(str(shadow), window, "replay", durable=False, home=str(Path.cwd())),
            leaves=Leaving.FOUND,  # what the window did of it is in `work`
        ),
        seen={} if flow is None else flow.seen(before.progress.event_times),
    )
    return ReferenceBackend(plan.compilation).run(task).parts


def _work(again: WindowAgain, into: Address, checkpoint: Checkpoint) -> list[WorkItem]:
    """The work of one input that the window did."""
    done = checkpoint.work.by_input.get(into)
    if done is None:
        return []
    found: dict[tuple[str | None, int, int], WorkItem] = {}
    """Each stretch once: what waited before the window may also be sent again."""
    try:
        for item in again.taken(into.operator):
            for part in stretches(checkpoint.work, into, item, frozenset()):
                found.setdefault((part.source, part.start, part.end), part)
    except NotFoundAgain as why:
        raise _not_again(into, checkpoint.window, str(why)) from why
    listed = sum((span.end or 0) - span.start for span in done.consumed)
    folded = 0 if done.folded is None else done.folded.positions
    if sum(end - start for _, start, end in found) != listed + folded:
        known = "they are not in the ledger, or have no ends or no positions"
        raise _not_again(into, checkpoint.window, "; ".join([known, *map(str, again.failures[:1])]))
    return list(found.values())


def _not_again(into: Address, window: int, why: str) -> RunFailure:
    return _replay_refused(
        f"window {window} cannot run again: not all elements that {into.operator} processed can be found again: {why}",
        "replay another window",
        Scene(into.operator, window),
    )


def _arriving(ledger: Ledger, program: Program, before: Checkpoint, entry: Window) -> list[Sent]:
    """The items that input operators sent to the window, and those that delays held."""
    held = restored(program, before.operators.held) if before.window else first_of_delays(program)
    taken, upto = _taken(entry.chain.before(entry.record, "ExecuteTransform")), _taken(entry.record)
    roots = {name: ledger.chain(name).dataset_id for name in ledger.names() if name in program.sources}
    discoveries = [
        discovery
        for name, root in roots.items()
        for discovery, _ in discovered(ledger, program, name, taken.get(root, -1) + 1, upto.get(root, -1))
    ]
    return [*delivered(program, discoveries), *held]


def _taken(record: Record | None) -> Mapping[str, int]:
    """The last block of each input that windows up to this one were given, by dataset id."""
    if record is None or not isinstance(record.block.event, ExecuteTransform):
        return {}
    pairs = zip(record.block.event.query_inputs, record.carry.consumed or (), strict=True)
    return {given.dataset_id: seq for given, seq in pairs if seq is not None}


def _rows(
    program: Program, parts: Sequence[Part], completed: Mapping[str, Sequence[Part]], place: str
) -> Mapping[tuple[str, str | None], list[bytes]]:
    """The rows in these pieces, by operator and file."""
    rows: dict[tuple[str, str | None], list[bytes]] = {}
    for part in in_order(part for part in parts if not part.is_external):
        found = place_of(part, completed, place)
        if found is None:
            raise _replay_refused(
                f"what window {part.window} wrote to {printable(part.file)} is not there any more: the file was moved "
                "or changed, or joined with later output before it was complete",
                "replay another window",
                Scene(part.operator, part.window),
            )
        writer = program.operators.get(part.operator)
        content = found.content() if writer is None else content_of_piece(writer[0], found.content())
        key = part.operator, part.file if part.element_id is not None else None
        rows.setdefault(key, []).extend(content.splitlines(keepends=True))
    return rows
