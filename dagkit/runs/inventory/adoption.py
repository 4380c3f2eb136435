"""Taking over the list of files that a file source of Structured Streaming has read."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from dagkit.api.files import AdoptsFiles
from dagkit.compiler import Compilation
from dagkit.engine.inputs.discoveries import Discovery
from dagkit.engine.record.journal import Journal
from dagkit.engine.worker.instances import saved
from dagkit.errors import RunFailure
from dagkit.ground.urls import shown
from dagkit.ledger import Ledger
from dagkit.plan import fingerprint
from dagkit.runs.inventory.listing import recorded, running_plan, set_up
from dagkit.runs.inventory.spark_checkpoint import ReadFiles, identity

ADOPTED = "dagkit.adopted/files"
"""The name under which an event records an adoption."""
MAX_FILE_AGE_MILLIS = 7 * 24 * 3600 * 1000
"""Spark's file source ignores files that are older than the newest one by more than this (its option maxFileAge)."""
_NAMED = 5
"""How many files a message names."""


def adoption_refused(problem: str, remedy: str) -> RunFailure:
    """The list of files of a query was not taken over, since records could be lost or doubled."""
    return RunFailure(problem, remedy, code="adoption-refused")


@dataclass(frozen=True, slots=True)
class Doubt:
    """How to count files of which the checkpoint does not show whether Spark has read them; None: not decided."""

    in_flight: bool | None = None
    """Whether the files of a micro-batch that has not ended count as read."""
    changed: bool | None = None
    """Whether files that changed after Spark had listed them count as read."""


@dataclass(slots=True)
class Adoption:
    """The files that a scan of an operator finds, by what Spark did with them."""

    operator: str
    read: ReadFiles
    doubt: Doubt
    read_by_spark: list[str] = field(default_factory=list)
    """Files that Spark has read, as they are now."""
    changed: list[str] = field(default_factory=list)
    """Files with another time of change than Spark noted."""
    in_flight: list[str] = field(default_factory=list)
    """Files of the micro-batch that has not ended, if they do not count as read."""
    new: dict[str, int] = field(default_factory=dict)
    """Files that the query has not taken: when each was changed, in milliseconds."""
    is_repeated: bool = False
    """Whether the operator knew all of the files before. Nothing was written then."""

    @property
    def adopted(self) -> list[str]:
        """The files that the operator counts as read."""
        return sorted(self.read_by_spark + (self.changed if self.doubt.changed else []))

    @property
    def unread(self) -> list[str]:
        """The files that the next launch reads."""
        return sorted([*self.new, *self.in_flight, *([] if self.doubt.changed else self.changed)])

    @property
    def old(self) -> list[str]:
        """Those of the new files that Spark ignores because of their age, unless its maxFileAge was set."""
        oldest = max(self.read.files.values(), default=0) - MAX_FILE_AGE_MILLIS
        return [path for path, millis in self.new.items() if millis < oldest]

    @property
    def missing(self) -> int:
        """How many of the files that Spark has read no scan finds: they are gone, or outside of the scanned places."""
        return len(self.read.files) - len(self.read_by_spark) - len(self.changed)

    def sort(self, path: str, modified_millis: int) -> bool:
        """Note a file that the scan finds, and return whether it counts as read."""
        known = identity(path)
        noted = self.read.files.get(known)
        if noted is None and known in self.read.unfinished:
            self.in_flight.append(path)
        elif noted is None:
            self.new[path] = modified_millis
        elif noted == modified_millis:
            self.read_by_spark.append(path)
        else:
            self.changed.append(path)
            return bool(self.doubt.changed)
        return noted is not None

    def as_record(self) -> dict[str, JsonValue]:
        """The record of the adoption for the ledger."""
        read = self.read
        return {
            "checkpoint": read.checkpoint,
            "query": read.query,
            "source": read.source,
            "batch": read.batch,
            "files": len(read.files),
            "hash": read.digest,
            "in_flight": self.doubt.in_flight,
            "changed": self.doubt.changed,
        }


def adopt(
    compilation: Compilation, ledger: Ledger, operator: str, read: ReadFiles, doubt: Doubt, *, pretend: bool = False
) -> Adoption:
    """Let an input operator remember the files that Spark has read, in one event of its chain.

    Raise adoption-refused, before anything is written, if a record could be lost or doubled. `pretend` writes nothing.
    """
    plan, checkpoint = running_plan(compilation, ledger)
    adoption = Adoption(operator, read, doubt)
    with set_up(plan.program, ledger, checkpoint, operator) as adopting:
        assert isinstance(adopting, AdoptsFiles), "the caller has chosen an operator that adopts files"
        before = saved(adopting, operator)
        why_not = adopting.adopt_files(adoption.sort)
        state = saved(adopting, operator)
    if why_not:
        raise adoption_refused(
            f"{operator} cannot remember what another program has read: {why_not}", "change the property"
        )
    _refuse_doubt(adoption)
    _refuse_overlap(adoption, ledger)
    adoption.is_repeated = state == before
    if not pretend and not adoption.is_repeated:
        journal = Journal(ledger, plan.program, fingerprint(compilation.plan), sys.modules["dagkit"].__version__)
        journal.add(Discovery(operator, ()), state, extra={ADOPTED: adoption.as_record()})
    return adoption


def _refuse_doubt(adoption: Adoption) -> None:
    """Raise `adoption-refused` unless it is known of each file whether Spark has read it."""
    read, doubt = adoption.read, adoption.doubt
    if read.unfinished and doubt.in_flight is None:
        raise adoption_refused(
            f"micro-batch {read.in_flight} of the query has not ended, and its sink may hold the rows of "
            f"{_named(sorted(read.unfinished))}",
            "let the query end it, with trigger(availableNow=True); or look into its sink, and state with --in-flight "
            "whether these files were `read` or `unread`",
        )
    if adoption.changed and doubt.changed is None:
        raise adoption_refused(
            f"Spark has listed these files, and they have changed since: {_named(adoption.changed)}",
            "Spark does not read them again. State with --changed whether they count as `read`, or as `unread`, in "
            "which case a launch reads each of them whole",
        )
    if read.files and not adoption.adopted and adoption.unread:
        raise adoption_refused(
            f"{adoption.operator} finds none of the {len(read.files)} files that Spark has read, but others: "
            f"{_named(adoption.unread)}",
            "let it scan the folder of the query. If Spark has removed the files that it read (cleanSource), there is "
            "nothing to take over: launch the application",
        )


def _refuse_overlap(adoption: Adoption, ledger: Ledger) -> None:
    """Raise `adoption-refused` if the application has found a file that Spark has read."""
    mine = set(adoption.adopted)
    both = [file.path for file in recorded(ledger) if file.finder == adoption.operator and file.path in mine]
    if both:
        raise adoption_refused(
            f"{adoption.operator} has found files that Spark has read, too: {_named(both)}",
            "adopt the checkpoint before the first launch, under another APPLICATION_PATH, and stop the query for good "
            "before that",
        )


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(map(shown, paths[:_NAMED])) + more
