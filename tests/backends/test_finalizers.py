"""Callbacks that operators register: the driver calls them once their window is committed, and none of another."""

import re
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from dagkit import Context, InputOperator, InputPort, Operator, OutputPort, State
from dagkit.api.running import Until
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.engine.run.loop import Loop
from dagkit.engine.worker.lifecycle import ReportedFinalizer, call_back
from dagkit.ledger import Ledger
from dagkit.ledger.stores import MemoryStore
from dagkit.testing.crashes import Crash, CrashAfter
from tests.backends.cast import chain
from tests.backends.places import everywhere


def note(path: str, text: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def refuse() -> None:
    raise ConnectionError("the broker is away")


class Unrestored:
    """A callback that can be pickled, and that cannot be made of what was written."""

    def __reduce__(self) -> Any:
        return refuse, ()

    def __call__(self) -> None: ...


class Unwritable(Unrestored):
    """A callback that fails while it is pickled."""

    def __reduce__(self) -> Any:
        raise ValueError("it holds a connection")


class Messages(InputOperator):
    messages = OutputPort(str)
    place: str
    done = State(0)

    def setup(self, context: Context) -> None:
        self._context = context

    def emit_tuples(self) -> None:
        if self.done < 2:
            self.messages.emit(f"m{self.done}")
            self._context.finalizer.register(lambda: note(self.place, "driver"))
            self.done += 1


class Acknowledge(Operator):
    """Registers another callback for each message, and acknowledges it, from a worker."""

    messages = InputPort(str)
    place: str
    other: Any = None
    """Makes the other callback."""

    def setup(self, context: Context) -> None:
        self._context = context

    def process(self, item: str) -> None:
        if self.other is not None:
            self._context.finalizer.register(self.other())
        self._context.finalizer.register(partial(note, self.place, item))


def run(home: Path, make: Any, ledger: Ledger, probe: Any = None, **given: Any) -> None:
    place = str(home / "acknowledged")
    compilation = chain(messages=Messages(place=place), acknowledge=Acknowledge(place=place, **given))
    settings = RunSettings("nowhere", until=Until.IDLE)
    Loop(RunState(compilation, make(compilation), ledger, settings, probe=probe)).run()


def acknowledged(home: Path) -> list[str]:
    place = home / "acknowledged"
    return sorted(place.read_text().split()) if place.exists() else []


@everywhere
def test_the_driver_calls_what_was_registered_once(tmp_path, make):
    run(tmp_path, make, Ledger(MemoryStore()))
    assert acknowledged(tmp_path) == ["driver", "driver", "m0", "m1"]


@pytest.mark.parametrize("point", [Point.RUNNING, Point.STAGED, Point.APPENDED])
def test_nothing_is_called_before_the_commit(tmp_path, make, point):
    ledger = Ledger(MemoryStore())
    with pytest.raises(Crash):
        run(tmp_path, make, ledger, CrashAfter(point, 1))
    assert acknowledged(tmp_path) == []
    run(tmp_path, make, ledger)
    assert [text for text in acknowledged(tmp_path) if text != "driver"] == (
        ["m1"] if point is Point.APPENDED else ["m0", "m1"]
    )


@everywhere
@pytest.mark.parametrize(
    ("other", "name"), [(lambda: refuse, "<function refuse"), (Unrestored, "a callback that the driver cannot restore")]
)
def test_a_callback_that_fails_or_that_the_driver_cannot_restore_is_logged(tmp_path, make, caplog, other, name):
    run(tmp_path, make, Ledger(MemoryStore()), other=other)
    assert acknowledged(tmp_path) == ["driver", "driver", "m0", "m1"]
    assert re.search(f"{name}.* failed after its records were committed", caplog.text)


@pytest.mark.parametrize("unsent", [lambda: Lock().acquire, Unwritable])
def test_a_callback_that_cannot_be_sent_is_refused_where_it_is_registered(tmp_path, make, unsent):
    with pytest.raises(OperatorFailed, match="cannot be sent to the driver; register a function of values") as raised:
        run(tmp_path, make, Ledger(MemoryStore()), other=unsent)
    assert raised.value.failure.operator == "acknowledge"


def test_the_log_of_a_callback_that_fails_names_its_file(caplog):
    finalizer = ReportedFinalizer()
    finalizer.register(lambda: 1 / 0)
    call_back(finalizer.written)
    assert f'File "{__file__}"' in caplog.text
