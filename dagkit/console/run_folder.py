"""The application's folder as the console reads it, by several threads in turn."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from dagkit.engine.record.history import application_chain, seen_in
from dagkit.engine.record.status_file import SeenRun
from dagkit.engine.run.launch_record import LAUNCHED, LaunchRecord, last_launch
from dagkit.ground.amounts import BYTE
from dagkit.ledger import Chain, ChainNotFound, Ledger

NOT_READ = ""
"""The unit of positions that an operator divides for others, or numbers: they are not read."""


@dataclass
class RunFolder:
    """One application's folder. Each reader sees the ledger as it is at that moment."""

    place: str
    # Reentrant: an answer that reads windows asks for the units of operators meanwhile.
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _ledger: Ledger | None = None
    _application: Chain | None = None
    _launched: LaunchRecord | None = None
    _launched_at: datetime | None = None

    @contextmanager
    def ledger(self) -> Iterator[Ledger | None]:
        """The ledger, for this thread alone within the block; None before the first launch creates it."""
        with self._lock:
            if self._ledger is None:
                self._ledger = self.own_ledger()
            else:
                self._ledger.refresh()
            yield self._ledger

    def own_ledger(self) -> Ledger | None:
        """The ledger as it is now, for an answer that reads long, so that others need not wait for it."""
        try:
            return Ledger.open(self.place)
        except ChainNotFound:
            return None

    @contextmanager
    def windows(self) -> Iterator[Chain | None]:
        """The application's chain with its newest blocks, for this thread alone; None before its first launch."""
        with self.ledger() as ledger:
            if self._application is None and ledger is not None:
                self._application = application_chain(ledger)
            yield self._application

    @contextmanager
    def chain(self, name: str) -> Iterator[Chain]:
        """A chain of the ledger with its newest blocks, for this thread alone."""
        with self.ledger() as ledger:
            assert ledger is not None, "a chain that was seen has a ledger"
            yield ledger.chain(name)

    def launched(self) -> LaunchRecord | None:
        """The record of the last launch, if it wrote one. It is read again only if it was replaced."""
        with self.ledger() as ledger:
            written = None if ledger is None else ledger.store.modified(LAUNCHED)
            if ledger is not None and written != self._launched_at:
                self._launched, self._launched_at = last_launch(ledger.store), written
            return self._launched

    def run(self) -> SeenRun | None:
        """The last launch, as its driver wrote it; None if no driver has written a status."""
        with self.ledger() as ledger:
            return None if ledger is None else seen_in(ledger)

    def units(self) -> Mapping[str, str]:
        """The unit of the positions of each operator, as the last driver wrote it; NOT_READ if it reads none."""
        run = self.run()
        operators = () if run is None else run.snapshot.operators
        return {operator.name: operator.unit if operator.reads else NOT_READ for operator in operators}

    def units_found(self) -> Mapping[str, str]:
        """The unit of the positions that each operator sends to others, except bytes."""
        launched, units = self.launched(), self.units()
        streams = () if launched is None else launched.plan.streams
        found = ((stream.source.operator, units.get(sink.operator)) for stream in streams for sink in stream.sinks)
        return {name: unit for name, unit in found if unit and unit != BYTE}
