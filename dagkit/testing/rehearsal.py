"""Rehearsals: an application run window by window in one thread, with a ledger in memory, for tests and documents.

rehearsal = Rehearsal(populate_dag)
rehearsal.window()
assert rehearsal.state_of("Count") == [{"seen": 3}]
"""

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dagkit.api.configuration import Config
from dagkit.api.running import Until
from dagkit.backends.reference import ReferenceBackend
from dagkit.clock import Timer
from dagkit.compiler import compile_application
from dagkit.compiler.steps import Author
from dagkit.engine.run.loop import Loop
from dagkit.engine.run.run_state import RunSettings, RunState
from dagkit.engine.worker.instances import SavedState
from dagkit.ledger import Ledger
from dagkit.ledger.stores import MemoryStore
from dagkit.testing.fake_clock import FakeClock


class Rehearsal:
    """A running application. Between two calls only the ledger keeps what it did."""

    def __init__(
        self, application: Author, conf: Config | Mapping[str, Any] | None = None, *, clock: Timer | None = None
    ) -> None:
        conf = conf if isinstance(conf, Config) else Config.of(conf or {})
        self.compilation = compile_application(application, conf)
        self.backend = ReferenceBackend(self.compilation)
        self.clock = clock or FakeClock()
        self.ledger = Ledger(MemoryStore(), self.clock)
        self._folder = tempfile.mkdtemp(prefix="dagkit-rehearsal-")
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def window(self) -> None:
        """Run one window, if there is work."""
        self._run(1)

    def run(self) -> None:
        """Run until all available work is done."""
        self._run(None)

    def state_of(self, operator: str) -> Sequence[SavedState]:
        """The state of each partition of an operator."""
        return [dict(state) for state in self.loop.run_state.state.get(operator, ())]

    def _run(self, windows: int | None) -> None:
        settings = RunSettings(self._folder, Until.ONCE, windows, durable=False, home=str(Path.cwd()))
        self.loop = Loop(RunState(self.compilation, self.backend, self.ledger, settings, clock=self.clock))
        self.loop.run()
        self.ledger.forget()
