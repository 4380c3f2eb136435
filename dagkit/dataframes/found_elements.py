"""The elements that an input operator has found, by their offset in its chain of the ledger."""

import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any

from dagkit.api.configuration import Config
from dagkit.api.controls import Stamped
from dagkit.api.dag import Dag
from dagkit.api.operators import InputOperator, Operator, main_outlet
from dagkit.api.running import Until
from dagkit.api.work import SplittableOperator, work_port
from dagkit.compiler import compile_application
from dagkit.conf.values.classes import ClassNotFound, find_class
from dagkit.dataframes.source_options import StreamOptions, options_invalid
from dagkit.engine.inputs.discoveries import Discovery
from dagkit.engine.inputs.driver_input import DriverInput, context_of
from dagkit.engine.program.lower import program_of
from dagkit.engine.record.journal import Journal
from dagkit.ground.clock import SystemClock
from dagkit.ledger import AddData, Ledger
from dagkit.plan import fingerprint

_INPUT, _READER = "Input", "Reader"
_SPIN_MILLIS = 500
"""How soon an input operator that states no interval looks again after it found nothing."""
_LONGEST_LOOK_SECONDS = 1.0
"""How long one look for a micro-batch lasts at most while the input operator still finds elements."""


class FoundElements:
    """Finds elements and records them, with the classes that the options name."""

    def __init__(self, options: StreamOptions) -> None:
        compilation = compile_application(_application(options), Config.of(dict(options.properties)))
        program = program_of(compilation)
        self.reader: Operator = program.operators[_READER][0]
        ledger = Ledger.create(options.ledger)
        version = sys.modules["dagkit"].__version__
        self._journal = Journal(ledger, program, fingerprint(compilation.plan), version)
        self._chain = self._journal.roots[_INPUT]
        self._recent: deque[tuple[int, Discovery]] = deque()
        """The discoveries since the last commit that this process made, each with its first offset."""
        self._window = 1
        self._ends: dict[int, int] = {}
        """The number of elements that were found up to the end of each window that is not committed."""
        self._woken = Event()
        clock = SystemClock()
        context = context_of(program, _INPUT, until=Until.STOPPED, now=clock.now, window_id=self._window)
        context = replace(context, launched=clock.now())
        self._now = clock.now
        state = self._journal.state_of(_INPUT)
        self._input = DriverInput(program, _INPUT, state, ended=False, context=context, wake=self._woken.set)

    @property
    def count(self) -> int:
        """How many elements were found, by this process or an earlier one."""
        standing = self._chain.standing
        last = standing.offset
        return 0 if last is None else last + 1

    def look(self, *, for_everything: bool = False) -> None:
        """Record what can be found now. Wait for work in the background.

        Unless it is `for_everything`, a look that takes long ends early, and the next one continues. One for everything
        also waits for what becomes ready without a change, such as files that were just written.
        """
        began, operator = time.monotonic(), self._input.operator
        while for_everything or time.monotonic() - began < _LONGEST_LOOK_SECONDS:
            # Before the questions, so that what becomes ready meanwhile ends the wait.
            self._woken.clear()
            if self._input.is_busy:
                self._woken.wait()
            elif not self._input.due(self._now()):
                next_look = self._input.next_look
                if next_look is None or not (for_everything and operator.holds_launch):
                    return
                self._woken.wait(max(0.0, (next_look - self._now()).total_seconds()))
            else:
                discovery = self._input.look(self._window, _SPIN_MILLIS)
                if discovery.emitted:
                    first = self.count
                    self._recent.append((first, self._journal.add(discovery, self._input.state)))
                    self._ends[self._window] = self.count

    def between(self, start: int, end: int) -> Iterator[Any]:
        """The elements between two offsets."""
        for first, discovery in self._discoveries(start):
            if first >= end:
                return
            for offset, emitted in enumerate(discovery.emitted, first):
                # Control tuples count as discoveries, too, but no reader reads them.
                if start <= offset < end and not isinstance(emitted.item, Stamped):
                    yield emitted.item

    def forget_before(self, offset: int) -> None:
        """Drop the discoveries before an offset from memory, and commit the windows that lie before it as a whole."""
        while self._recent and self._recent[0][0] + len(self._recent[0][1].emitted) <= offset:
            self._recent.popleft()
        # Only these: Spark asks for more before it commits what it has read.
        for window in [window for window, end in self._ends.items() if end <= offset]:
            del self._ends[window]
            self._input.commit(window)
        # The figures are of no use here. Asking for them drops them.
        self._input.figures(self._window)
        self._window += 1

    def close(self) -> None:
        self._input.end(self._window)

    def _discoveries(self, start: int) -> Iterator[tuple[int, Discovery]]:
        """The discoveries from the one that holds an offset, each with its first offset."""
        if self._recent and self._recent[0][0] <= start:
            yield from list(self._recent)
            return
        first = self._chain.seek_offset(start)
        for record in () if first is None else self._chain.records(first.seq):
            event = record.block.event
            if isinstance(event, AddData) and event.new_data is not None:
                yield event.new_data.first, self._journal.discovery(_INPUT, record)


def _application(options: StreamOptions) -> Any:
    input_class = _class_named(options.input, "input", InputOperator)
    reader_class = _class_named(options.reader, "reader", SplittableOperator)

    def found_elements(dag: Dag, conf: Config) -> None:  # noqa: ARG001 - the form of populate_dag
        outlet = main_outlet(dag.add_operator(_INPUT, input_class()))
        reader = dag.add_operator(_READER, reader_class())
        if outlet is None:
            raise options_invalid(f"{options.input} has no main output", "mark one of its outputs with main=True")
        dag.add_stream("elements", outlet, getattr(reader, work_port(reader)))

    return found_elements


def _class_named(name: str, option: str, base: type) -> Any:
    try:
        named = find_class(name)
    except ClassNotFound as error:
        raise options_invalid(f"the option {option}: {error}", error.help) from error
    if not issubclass(named, base):
        raise options_invalid(f"the option {option}: {name} is no {base.__name__}", f"name a {base.__name__}")
    return named
