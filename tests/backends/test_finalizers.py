"""Callbacks that operators register: the driver calls them once their window is committed, and none of another."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from dagkit import Context, Dag, InputOperator, InputPort, Operator, OutputPort, State
from dagkit.api.running import Until
from dagkit.backends.reference import ReferenceBackend
from dagkit.backends.spark import SparkBackend
from dagkit.compiler import Compilation, compile_application
from dagkit.engine.failures import OperatorFailed
from dagkit.engine.points import Point
from dagkit.engine.run.loop import Loop
from dagkit.engine.run.run_state import RunSettings, RunState
from dagkit.engine.worker.finalizers import ReportedFinalizer, call_back
from dagkit.engine.worker.protocol import Backend
from dagkit.ledger import Ledger
from dagkit.ledger.stores import MemoryStore
from dagkit.testing.crashes import Crash, CrashAfter
from tests.backends.places import EVERYWHERE, SPARK_IN_TRIALS
from tests.backends.slots import InSlots

Make = Callable[[Compilation], Backend]


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


class Unwritable:
    """A callback that fails while it is pickled."""

    def __reduce__(self) -> Any:
        raise ValueError("it holds a connection")

    def __call__(self) -> None: ...


class Messages(InputOperator):
    """Emits a message in each look, and acknowledges it."""

    kind = "finalizers.messages/1"
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
    """Acknowledges each message from a worker."""

    kind = "finalizers.acknowledge/1"
    messages = InputPort(str)
    place: str
    fails: bool = False
    unsent: Any = None
    """A callback that cannot be sent to the driver."""
    restores: bool = True

    def setup(self, context: Context) -> None:
        self._context = context

    def process(self, item: str) -> None:
        if self.unsent is not None:
            self._context.finalizer.register(self.unsent())
        if not self.restores:
            self._context.finalizer.register(Unrestored())
        if self.fails:
            self._context.finalizer.register(refuse)
        self._context.finalizer.register(partial(note, self.place, item))


@pytest.fixture(params=["reference", "slots", SPARK_IN_TRIALS])
def make(request):
    def made(compilation: Compilation) -> Backend:
        if request.param == "reference":
            return ReferenceBackend(compilation)
        if request.param == "slots":
            return InSlots(compilation)
        return SparkBackend(compilation, request.getfixturevalue("spark"))

    return made


def run(home: Path, make: Make, ledger: Ledger, probe: Any = None, **given: Any) -> None:
    place = str(home / "acknowledged")

    def draw(dag: Dag, conf: object) -> None:
        messages = dag.add_operator("messages", Messages(place=place))
        acknowledge = dag.add_operator("acknowledge", Acknowledge(place=place, **given))
        dag.add_stream("messages", messages.messages, acknowledge.messages)

    compilation = compile_application(draw)
    settings = RunSettings("nowhere", until=Until.IDLE)
    Loop(RunState(compilation, make(compilation), ledger, settings, probe=probe)).run()


def acknowledged(home: Path) -> list[str]:
    place = home / "acknowledged"
    return sorted(place.read_text().split()) if place.exists() else []


@pytest.mark.parametrize("make", EVERYWHERE, indirect=True)
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


@pytest.mark.parametrize("make", EVERYWHERE, indirect=True)
def test_a_callback_that_fails_is_logged(tmp_path, make, caplog):
    with caplog.at_level(logging.ERROR):
        run(tmp_path, make, Ledger(MemoryStore()), fails=True)
    assert acknowledged(tmp_path) == ["driver", "driver", "m0", "m1"]
    assert "failed after its records were committed" in caplog.text


def test_a_callback_that_the_driver_cannot_restore_is_logged(tmp_path, make, caplog):
    with caplog.at_level(logging.ERROR):
        run(tmp_path, make, Ledger(MemoryStore()), restores=False)
    assert acknowledged(tmp_path) == ["driver", "driver", "m0", "m1"]
    assert "a callback that the driver cannot restore failed after its records were committed" in caplog.text


@pytest.mark.parametrize("unsent", [lambda: Lock().acquire, Unwritable])
def test_a_callback_that_cannot_be_sent_is_refused_where_it_is_registered(tmp_path, make, unsent):
    with pytest.raises(OperatorFailed, match="cannot be sent to the driver; register a function of values") as raised:
        run(tmp_path, make, Ledger(MemoryStore()), unsent=unsent)
    assert raised.value.failure.operator == "acknowledge"


def test_the_log_of_a_callback_that_fails_names_its_file(caplog):
    finalizer = ReportedFinalizer()
    finalizer.register(lambda: 1 / 0)
    call_back(finalizer.written)
    assert f'File "{__file__}"' in caplog.text
