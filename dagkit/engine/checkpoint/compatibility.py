"""Continuing under a plan that may have changed: whether what was kept still has somebody who takes it. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from dagkit.api.state import declared_state
from dagkit.engine.address import Address
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.discoveries import Discovery
from dagkit.engine.program.program import Program
from dagkit.engine.worker.instances import SavedState
from dagkit.errors import DagkitError, did_you_mean


class WorkStranded(DagkitError):
    """Work was kept for an input that is no more; whoever went on without it would lose it."""

    exit_code: ClassVar[int] = 7

    def __init__(self, what: str, into: str, known: Iterable[str]) -> None:
        super().__init__(
            f"{what} for {into}, and the application has no such input any more; {did_you_mean(into, known)} Give it "
            "its old name and wire until that is done, or begin anew under another APPLICATION_PATH"
        )


class OperatorRenamed(DagkitError):
    """What an operator left is kept under its old name; under a new one it would begin anew, unnoticed."""

    exit_code: ClassVar[int] = 7

    def __init__(self, before: str, now: str, what: str, consequence: str) -> None:
        super().__init__(
            f"{before} is gone, and {now} is new: if it is the same operator, give it its old name, under which its "
            f"{what} is kept. If it is another one, launch with neither of them until a window is committed, and "
            f"then with {now}: {consequence}"
        )


class ReaderReplaced(DagkitError):
    """Blocks wait to be read in part, and an operator that takes them whole has come in the place of their reader."""

    exit_code: ClassVar[int] = 7

    def __init__(self, what: str, into: str) -> None:
        operator = into.partition(".")[0]
        super().__init__(
            f"{what} for {into}, and {operator} is no splittable operator any more, so that it would never get them; "
            "launch with the reader that it was until that is done, or begin anew under another APPLICATION_PATH"
        )


class FindingsStranded(DagkitError):
    """What an input operator found left by a port that leads nowhere any more; it would count as worked on."""

    exit_code: ClassVar[int] = 7

    def __init__(self, operator: str, port: str, count: int) -> None:
        super().__init__(
            f"{operator} found {count} item{'s' if count > 1 else ''} at {port} that no window was given yet, and that "
            "port leads nowhere any more; connect it as it was until that is done, or begin anew under another "
            "APPLICATION_PATH"
        )


def refuse_stranded_findings(program: Program, findings: Iterable[Discovery]) -> None:
    """Returns only if what was found and not given to a window leads somewhere; a port that never did keeps nothing."""
    left = Counter((found.operator, emitted.port) for found in findings for emitted in found.emitted)
    for (operator, port), count in sorted(left.items()):
        if not program.sources[operator].get(port):
            raise FindingsStranded(operator, port, count)


def refuse_stranded(program: Program, checkpoint: Checkpoint, promised: Iterable[Address]) -> None:
    """Returns only if there is an input for every block that waits and every item that a delay holds."""
    inputs = sorted({target.address for target in program.targets.values()})
    queues = program.queued_slots
    waiting = [each.into for each in checkpoint.queue]
    for into in [*waiting, *promised]:
        blocks = max(1, waiting.count(into))
        told = f"{blocks} block{'s wait' if blocks > 1 else ' waits'}"
        if into not in inputs:
            raise WorkStranded(told, into, inputs)
        if into not in queues:
            raise ReaderReplaced(told, into)
    for held in checkpoint.held:
        if held.into not in inputs:
            raise WorkStranded(f"{len(held.items)} items were held back by a delay", held.into, inputs)


def refuse_renamed(program: Program, kept: Mapping[str, Sequence[SavedState]]) -> None:
    """Returns only if no state waits for an operator that is gone while another one is new that could be it."""
    new = {
        name: set(declared_state(type(operators[0])))
        for name, operators in program.operators.items()
        if name not in kept and name in program.stage_of
    }
    for before, states in kept.items():
        if before in program.operators or "." in before:
            continue
        names = {name for state in states for name in state}
        now = next((name for name, declared in new.items() if names and names <= declared), None)
        if now is not None:
            what = f"state {', '.join(sorted(names))}"
            raise OperatorRenamed(before, now, what, f"what {before} remembered is forgotten then")
