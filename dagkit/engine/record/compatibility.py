"""Check that a plan that may have changed has a receiver for everything that a checkpoint holds. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from dagkit.api.state import declared_state
from dagkit.engine.inputs.discoveries import Discovery
from dagkit.engine.program.address import Address
from dagkit.engine.program.program import Program
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.worker.instances import SavedState
from dagkit.errors import RunFailure, Scene, did_you_mean


def _work_stranded(what: str, into: str, known: Iterable[str]) -> RunFailure:
    """The checkpoint holds work for an input that the application no longer has."""
    return RunFailure(
        f"{what} for {into}, and the application no longer has this input",
        f"{did_you_mean(into, known)} Give it its old name and wire until that work is done, or start over under "
        "another APPLICATION_PATH",
        Scene(into.partition(".")[0]),
        code="work-stranded",
    )


def operator_renamed(before: str, now: str, what: str, consequence: str) -> RunFailure:
    """State is stored under an operator's old name; with its new name the operator would silently start over."""
    return RunFailure(
        f"{before} is gone and {now} is new, and the {what} of {before} is kept under its name",
        f"if they are the same operator, give it its old name. If {now} is of another application, set "
        f"APPLICATION_NAME or --path; --fresh begins again beside the earlier run. To keep all other state, "
        f"launch without both until a window is committed, then with {now}: {consequence}",
        Scene(now),
        code="operator-renamed",
    )


def refuse_stranded_discoveries(program: Program, discoveries: Iterable[Discovery]) -> None:
    """Raise `discovery-stranded` if a discovery that no window has processed came from a port without a stream."""
    left = Counter((found.operator, emitted.port) for found in discoveries for emitted in found.emitted)
    for (operator, port), count in sorted(left.items()):
        if not program.sources[operator].get(port):
            raise RunFailure(
                f"{operator} emitted {count} item{'s' if count > 1 else ''} at {port} that no window has processed, "
                "and that port is no longer connected",
                "connect it as before until they are processed, or start over under another APPLICATION_PATH",
                Scene(operator),
                code="discovery-stranded",
            )


def refuse_stranded(program: Program, checkpoint: Checkpoint, promised: Iterable[Address]) -> None:
    """Raise unless there is an input for every pending block and every item that a delay holds."""
    inputs = sorted({target.address for target in program.targets.values()})
    queues = program.queued_slots
    waiting = checkpoint.queue.lengths()
    for into in [*waiting, *promised]:
        blocks = max(1, waiting[into])
        blocks_wait = f"{blocks} block{'s wait' if blocks > 1 else ' waits'}"
        if into not in inputs:
            raise _work_stranded(blocks_wait, into, inputs)
        if into not in queues:
            raise RunFailure(
                f"{blocks_wait} for {into}, and {into.operator} is no longer a splittable operator, so it would never "
                "get them",
                "launch with the earlier reader until that work is done, or start over under another APPLICATION_PATH",
                Scene(into.operator),
                code="reader-replaced",
            )
    for held in checkpoint.operators.held:
        if held.into not in inputs:
            raise _work_stranded(f"{len(held.items)} items were held back by a delay", held.into, inputs)


def refuse_renamed(program: Program, kept: Mapping[str, Sequence[SavedState]]) -> None:
    """Raise `operator-renamed` if stored state belongs to a missing operator and a new one declares that state."""
    new = {
        name: set(declared_state(type(operators[0])))
        for name, operators in program.operators.items()
        if name not in kept and name in program.stage_of
    }
    for before, states in kept.items():
        # the state of a sliding window has the name of an output, as in `Operator.output`
        if before in program.operators or "." in before:
            continue
        names = {name for state in states for name in state}
        now = next((name for name, declared in new.items() if names and names <= declared), None)
        if now is not None:
            what = f"state {', '.join(sorted(names))}"
            raise operator_renamed(before, now, what, f"what {before} remembered is forgotten then")
