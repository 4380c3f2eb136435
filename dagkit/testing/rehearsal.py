"""Rehearsals: an application run window by window in one thread, with a ledger in memory, for tests and documents.

outputs = run_app(WordCount(), {"Lines": ["to be", "or not to be"]})
assert outputs["counts"] == [("be", 2), ("not", 1), ("or", 1), ("to", 2)]

rehearsal = Rehearsal(populate_dag)
rehearsal.window()
assert rehearsal.state_of("Count") == [{"seen": 3}]
"""

import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from dagkit.api.component import Component
from dagkit.api.configuration import Config
from dagkit.api.operators import InputOperator
from dagkit.api.outage import present_outages
from dagkit.api.ports import OutputPort, output_ports
from dagkit.api.running import Until
from dagkit.api.state import State
from dagkit.backends.reference import ReferenceBackend
from dagkit.compiler import Compilation, compile_application
from dagkit.compiler.fuse import Fused
from dagkit.compiler.steps import Author
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.program.points import Probe
from dagkit.engine.run.loop import Loop
from dagkit.engine.worker.instances import SavedState
from dagkit.errors import RunFailure, did_you_mean
from dagkit.ground.clock import Timer
from dagkit.ledger import Ledger
from dagkit.ledger.stores import MemoryStore
from dagkit.testing.crashes import Crashes, FakeClock

_LONGEST_AWAY = timedelta(minutes=10)

Looks = Sequence[Mapping[str, Sequence[Any]]]
"""What is emitted in each look: items, by input operator, or by `operator.port` if it has several outputs."""


def with_input(compilation: Compilation, looks: Looks) -> Compilation:
    """The compilation with each named input operator replaced. Input operators that `looks` does not name remain."""
    fused = compilation.steps["fused"]
    assert isinstance(fused, Fused), "an application is compiled to the end before it runs"
    ports = {key: _port_named(compilation, key) for look in looks for key in look}
    for look in looks:
        named: dict[tuple[str, str], str] = {}
        for key in look:
            if (other := named.setdefault(ports[key], key)) != key:
                raise KeyError(f"{other} and {key} are one output")
    partitioned = dict(fused.partitioned)
    for name in {name for name, _ in ports.values()}:
        given = [{ports[key][1]: tuple(look[key]) for key in look if ports[key][0] == name} for look in looks]
        operator = _given_class(compilation.graph.by_name[name].operator)(looks=tuple(given))
        partitions = tuple(replace(partition, operator=operator) for partition in partitioned[name].partitions)
        partitioned[name] = replace(partitioned[name], partitions=partitions)
    return replace(compilation, steps={**compilation.steps, "fused": replace(fused, partitioned=partitioned)})


def _port_named(compilation: Compilation, key: str) -> tuple[str, str]:
    """The operator and the port of a key. Raise KeyError, with a similar name, if there is none."""
    name, _, port = key.partition(".")
    nodes = {node.name: node for node in compilation.graph.nodes if isinstance(node.operator, InputOperator)}
    if name not in nodes:
        raise KeyError(f"no input operator {name!r}; {did_you_mean(name, nodes)}")
    outputs = nodes[name].output_ports
    if not port and len(outputs) == 1:
        (port,) = outputs
    port = port or next((each.name for each in outputs.values() if each.main), "")
    if port not in outputs:
        raise KeyError(f"{name} has no output {port!r}; name one of {', '.join(f'{name}.{each}' for each in outputs)}")
    return name, port


class Given(InputOperator):
    """Emits in each look what was given for it. Subclasses declare the outputs of the operator that they replace."""

    looks: tuple[dict[str, tuple[Any, ...]], ...] = ()
    looked = State(0)

    def emit_tuples(self) -> None:
        """Emit what is given for the present look."""
        if self.looked < len(self.looks):
            for port, items in self.looks[self.looked].items():
                for item in items:
                    getattr(self, port).emit(item)
            self.looked += 1

    def looks_again_in_millis(self) -> int:
        """Look again at once: what comes next is known."""
        return 0


def _given_class(replaced: Component) -> type[Given]:
    """A class of given input with the outputs of an operator."""
    ports: Mapping[str, OutputPort[Any]] = output_ports(type(replaced))
    return type("Given", (Given,), {"__module__": __name__} | {name: copy(port) for name, port in ports.items()})


class Outputs(Mapping[str, list[Any]]):
    """What an application did in its committed windows: the items of each stream by its name, files and state."""

    def __init__(
        self,
        streams: Mapping[str, list[Any]],
        files: Mapping[str, bytes],
        state: Mapping[str, Sequence[SavedState]],
    ) -> None:
        self._streams = streams
        self.files = files
        """The content of each output file with a relative path."""
        self.state = state
        """The state of each partition, by operator."""

    def __getitem__(self, stream: str) -> list[Any]:
        if stream not in self._streams:
            raise KeyError(f"no stream {stream!r} between operators; {did_you_mean(stream, self._streams)}")
        return self._streams[stream]

    def __iter__(self) -> Iterator[str]:
        return iter(self._streams)

    def __len__(self) -> int:
        return len(self._streams)

    def __repr__(self) -> str:
        return f"Outputs({self._streams!r})"


class _RehearsalClock(FakeClock):
    """A clock that moves by itself, but not for ever: a test whose server does not run would hang and print nothing."""

    _away_since: datetime | None = None

    def wait(self, woken: threading.Event, until: datetime) -> None:
        outages = present_outages()
        self._away_since = (self._away_since or self.now()) if outages else None
        if self._away_since is not None and until - self._away_since > _LONGEST_AWAY:
            raise RunFailure(
                f"a rehearsal waits for a server, and no longer than {_LONGEST_AWAY} of its clock: {outages[0]}",
                "start the server that the test needs",
                code="system-unavailable",
            )
        super().wait(woken, until)


class Rehearsal:
    """A running application. Between two calls only the ledger keeps what it did.

    `inputs` are what input operators emit instead of looking, one mapping for each look. Relative paths of output start
    from `home`, by default the working directory. Unless a `clock` is given, time passes while the application waits; a
    server that does not answer for ten minutes ends the run with system-unavailable.
    """

    def __init__(
        self,
        application: Author,
        conf: Config | Mapping[str, Any] | None = None,
        *,
        clock: Timer | None = None,
        inputs: Looks = (),
        home: str | Path | None = None,
    ) -> None:
        conf = conf if isinstance(conf, Config) else Config.of(conf or {})
        self.compilation: Compilation = with_input(compile_application(application, conf), inputs)
        self.backend = ReferenceBackend(self.compilation, watch=self._note)
        self.clock = clock or _RehearsalClock()
        self.ledger = Ledger(MemoryStore(), self.clock)
        self.home = Path.cwd() if home is None else Path(home)
        self._sent: dict[tuple[int, str, str], list[Any]] = {}
        self._folder = tempfile.mkdtemp(prefix="dagkit-rehearsal-")
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def window(self) -> None:
        """Run one window, if there is work."""
        self._run(1)

    def run(self, *, probe: Probe | None = None) -> None:
        """Run until all available work is done. A `probe` may crash the run; the next call resumes it."""
        self._run(None, probe)

    def state_of(self, operator: str) -> Sequence[SavedState]:
        """The state of each partition of an operator."""
        states = self.loop.state
        return [dict(state) for state in states.get(operator, ())]

    @property
    def sent(self) -> dict[str, list[Any]]:
        """The items that committed windows sent, by stream; without the streams of input operators."""
        committed, graph = self.loop.checkpoint.window, self.compilation.graph
        ends = {stream.name: stream.source for stream in graph.streams if stream.source is not None}
        return {
            name: [
                item
                for (window_id, operator, port), items in sorted(self._sent.items(), key=lambda each: each[0])
                if window_id <= committed and (operator, port) == (source.node, source.port)
                for item in items
            ]
            for name, source in ends.items()
            if not isinstance(graph.by_name[source.node].operator, InputOperator)
        }

    def _note(self, window_id: int, operator: str, port: str, items: list[Any]) -> None:
        self._sent[window_id, operator, port] = items

    def _run(self, windows: int | None, probe: Probe | None = None) -> None:
        settings = RunSettings(self._folder, Until.ONCE, windows, overlap=1, durable=False, home=str(self.home))
        state = RunState(self.compilation, self.backend, self.ledger, settings, clock=self.clock, probe=probe)
        self.loop = Loop(state)
        try:
            self.loop.run()
        finally:
            # The next run reads the chains again, as another process would.
            self.ledger.forget()


def run_app(
    application: Author,
    *inputs: Mapping[str, Sequence[Any]],
    conf: Config | Mapping[str, Any] | None = None,
    clock: Timer | None = None,
    crashes: Crashes | None = None,
) -> Outputs:
    """Run an application in memory until all available work is done, and return what it sent, wrote and kept.

    Each mapping of `inputs` has the items that input operators emit for one window, by operator; other input operators
    look as usual. Relative paths of all other operators start from a temporary folder. With `crashes`, the run is ended
    after a step of each window and resumed.
    """
    with tempfile.TemporaryDirectory(prefix="dagkit-outputs-") as folder:
        rehearsal = Rehearsal(application, conf, clock=clock, inputs=inputs, home=folder)
        if crashes is None:
            rehearsal.run()
        else:
            crashes(lambda probe: rehearsal.run(probe=probe))
        paths = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    state = {operator: rehearsal.state_of(operator) for operator in rehearsal.loop.state}
    return Outputs(rehearsal.sent, files, state)
