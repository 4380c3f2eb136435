"""What the next launch of an application does with the state in its folder, as lines and as fields."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from dagkit.cli.terminal.output import shown_place
from dagkit.compiler import Compilation
from dagkit.engine.parts.running_plan import RunningPlan
from dagkit.engine.record.history import newest_checkpoint
from dagkit.engine.record.state_verdicts import Verdict, verdicts
from dagkit.engine.run.launch_record import last_launch
from dagkit.errors import printable
from dagkit.ground.amounts import counted
from dagkit.ledger import Ledger
from dagkit.plan import Change, diff


def judged(ledger: Ledger, compilation: Compilation) -> list[Verdict]:
    """What a launch of the application does with the state in the ledger."""
    plan = RunningPlan.resumed(compilation, newest_checkpoint(ledger))
    return verdicts(plan.program, ledger)


def fates(judged: Sequence[Verdict]) -> Iterator[str]:
    """The verdicts as lines."""
    yield "state:" if judged else "state: there is none"
    for verdict in judged:
        code = f" [{verdict.code}]" if verdict.code else ""
        yield printable(f"  {verdict.operator}: {verdict.fate}: {verdict.detail}{code}")


def change_fields(changes: Sequence[Change]) -> list[dict[str, str]]:
    """The changes in JSON documents."""
    return [{"kind": change.kind, "subject": change.subject, "text": change.text} for change in changes]


@dataclass(frozen=True, slots=True)
class NextLaunch:
    """What the ledger of an application has seen, and what differs now."""

    place: str
    window: int
    """The last committed window; 0 if there is none."""
    last: datetime | None
    """The last launch; None if it recorded no plan."""
    changes: Sequence[Change]
    state: Sequence[Verdict]

    @classmethod
    def at(cls, place: str, compilation: Compilation) -> "NextLaunch":
        """The next launch of the application in this folder, which holds a ledger."""
        ledger = Ledger.open(place)
        before = last_launch(ledger.store)
        return cls(
            place,
            newest_checkpoint(ledger).window,
            None if before is None else before.at,
            () if before is None else diff(before.authored, compilation.plan),
            judged(ledger, compilation),
        )

    def lines(self) -> Iterator[str]:
        """All of it, for a reader."""
        last = f"window {self.window} is the last one" if self.window else "no window is committed yet"
        yield f"its ledger is in {shown_place(self.place)}: {last}"
        if self.last is not None:
            since = "since the last launch"
            # Another number of partitions alone changes routes, unifiers and stages: nine lines for one changed value.
            # Nothing else differs if the machine has another number of cores; then these are the changes.
            changes = [change for change in self.changes if not change.follows] or self.changes
            yield f"{counted(len(changes), 'change')} {since}:" if changes else f"no change {since}"
            yield from (printable(f"  {change}") for change in changes)
            if following := len(self.changes) - len(changes):
                more = f"{counted(following, 'part')} of the plan {'differs' if following == 1 else 'differ'}, too"
                yield f"  so {more}: dagkit diff {shlex.quote(shown_place(self.place))} APP"
            if self.changes and self.window:
                yield "  input that was processed is not processed again"
        yield from fates(self.state)

    def fields(self) -> dict[str, Any]:
        """All of it in a JSON document."""
        return {
            "path": self.place,
            "window": self.window,
            "last_launch": self.last,
            "changes": change_fields(self.changes),
            "state": [asdict(verdict) for verdict in self.state],
        }
