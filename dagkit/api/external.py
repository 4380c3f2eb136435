"""External outputs: what a window stages for a database, a topic or a table reaches it once, after the window's commit.

class Insert(Operator):
    staged = ExternalOutput(lambda insert: Database(insert.url, insert.table))

    def process(self, row: Row) -> None:
        self.staged.add(json.dumps(row).encode())
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from dagkit.api.declared import Service, declarations
from dagkit.errors import RunFailure

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Entries(Protocol):
    """What an operator stages for an external system in one slot and one window."""

    def add(self, entry: "ReadableBuffer", /) -> None:
        """Stage bytes as one entry. An entry costs eight bytes of its own, so let one hold many records."""


class StagedWindow(Protocol):
    """What all slots staged for an external system in one committed window."""

    @property
    def writer(self) -> str:
        """The name of the writer: equal for all launches of an application, different for an application that starts
        over, and for each output of an operator.
        """

    @property
    def window_id(self) -> int: ...

    def entries(self) -> Iterator[bytes]:
        """The entries, slot by slot, those of a slot in the order in which it added them. It may be called again."""


class ExternalSystem(Protocol):
    """A connection of the driver to a database, a broker or a table, which takes each window in one transaction.

    `prepare` and `apply` may raise `Unavailable`: the driver closes the system, waits, and begins again with a new one.
    Any other exception ends the launch, and the next launch repeats the call.
    """

    def prepare(self, writer: str) -> None:
        """Connect, check that windows can be applied, and create what is missing.

        It is called before the launch reads anything, so refuse here what would be refused in `apply`.
        """

    def apply(self, window: StagedWindow) -> None:
        """Apply a window, unless the system has it.

        In one transaction, make the entries visible and record the writer and the window. A window that is not newer
        than the recorded one is there already: the run before was killed before it noted that, or an older driver is
        late. Windows come in ascending order; one in which no slot added an entry does not come.
        """

    def close(self) -> None:
        """Disconnect. It is called once for each `prepare`, also after a failure."""


class Unavailable(RunFailure):
    """Raised by an `ExternalSystem` that cannot be reached or has no room now. The run waits, and connects again.

    An input operator raises it in `emit_tuples` if its source does not answer: the run looks again later. Another
    operator raises it in `process`, or in any other of its methods: the run tries the window again later.
    """

    code = "system-unavailable"
    usual_help = "start it again or make room there; then launch again: what is committed is delivered first"
    retry_after: float = 0.0
    """The least seconds to wait, if the system asked for that. The run may wait longer."""
    has_progressed: bool = False
    """Whether the system accepted a part since the attempt before, so that the pauses begin again."""


class ExternalOutput(Service[Entries]):
    """Declares that an operator stages entries for an external system, and how the driver reaches that system."""

    def __init__(
        self,
        system: Callable[[Any], ExternalSystem],
        *,
        waits_seconds: Callable[[Any], float | None] = lambda _: None,
    ) -> None:
        self.system = system
        self.waits_seconds = waits_seconds
        """How long the run waits for an unavailable system before it fails; None: until it is stopped."""


def external_outputs(component: type) -> Mapping[str, ExternalOutput]:
    """The external outputs that a class declares, by name; those of its bases come first."""
    return declarations(component, ExternalOutput)
