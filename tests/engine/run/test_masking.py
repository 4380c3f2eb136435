"""No secret of an operator leaves a run: in no field of a failure, in no event, and in nothing that dagkit logs."""

import logging
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr

from dagkit import InputPort, Operator, OutputPort, SplittableOperator
from dagkit.api.running import Context
from dagkit.api.secrets import MASK
from dagkit.engine.files.pieces import staging_failed
from dagkit.engine.program.failures import CodecFailed, failed_within
from dagkit.engine.program.masking import Masking
from dagkit.engine.record.run_events import Committed, Failed, RunEvent
from dagkit.engine.worker.lifecycle import Life
from dagkit.errors import InputUnreadable, RunFailure
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit_operators import Items
from tests.engine.cast import Desk, Draw, Swallow, chain, on_both

SECRET = "hunter2"  # noqa: S105 - it opens nothing


class Holder(Swallow):
    password: SecretStr = SecretStr(SECRET)


class Refusing(Holder):
    def process(self, item: Any) -> None:
        raise InputUnreadable(f"cannot read https://anna:{SECRET}@host", f"let {SECRET} read it")


class Abandoning(SplittableOperator[Any]):
    input = InputPort[Any](main=True)
    numbers = OutputPort(int)
    password: SecretStr = SecretStr(SECRET)

    def initial_restriction(self, element: Any) -> OffsetRange:
        return OffsetRange(0, 3)

    def process(self, element: Any, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[int]:
        yield from ()


class Unkeyed(Holder):
    """Its key fails, which its sender computes."""

    input = InputPort[Any](key=lambda item: int(f"{item} is no number"))


class Passing(Operator):
    input = InputPort[Any]()
    output = OutputPort[Any]()

    def process(self, item: Any) -> None:
        self.output.emit(item)


def failing(operator: Operator, partitions: int = 1) -> Draw:
    return chain(items=Items(items=(f"order of {SECRET}",)), passing=Passing(), failing=(operator, partitions))


def all_of(failure: RunFailure) -> str:
    return f"{failure} {failure.args} {vars(failure)}"


@on_both
@pytest.mark.parametrize(
    ("draw", "shows"),
    [
        (failing(Refusing()), [f"cannot read https://anna:{MASK}@host", f"help: let {MASK} read it"]),
        (failing(Abandoning()), [f"process returned, and of 'order of {MASK}'"]),
        (failing(Unkeyed(), 2), [f"order of {MASK} is no number"]),
    ],
    ids=["refused input", "unclaimed work", "a key in another stage"],
)
def test_neither_a_failure_nor_its_event_holds_a_secret(tmp_path, draw, shows, backend):
    events: list[RunEvent] = []
    with pytest.raises(RunFailure) as raised:
        Desk(tmp_path, draw, backend=backend).run(observers=[events.append])
    assert [text for text in shows if text not in str(raised.value)] == []
    (failed,) = (event for event in events if isinstance(event, Failed))
    assert MASK in failed.message
    assert SECRET not in f"{all_of(raised.value)} {raised.value.__cause__} {failed.message}"


def _of_a_codec() -> RunFailure:
    failure = CodecFailed("failing")
    failure.__cause__ = ValueError(f"no bytes of {SECRET}")
    return failure.in_window(1)


@pytest.mark.parametrize(
    "failure",
    [failed_within(staging_failed(f"/{SECRET}/out", OSError(f"no {SECRET}")), "failing", 1), _of_a_codec()],
    ids=["staging", "codec"],
)
def test_a_failure_within_the_engine_is_masked_in_place(failure):
    whole = pickle.loads(pickle.dumps(failure))  # noqa: S301 - made above
    assert SECRET in all_of(failure)
    Masking(lambda: [Holder()]).mask(failure)
    assert SECRET not in all_of(failure)
    assert (failure.code, failure.scene) == (whole.code, whole.scene)
    assert all_of(failure) == all_of(whole).replace(SECRET, MASK)


@dataclass
class Breaking:
    password: str = SECRET

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, Committed):
            raise ConnectionError(f"no event for {self.password}")


def test_an_exception_that_is_logged_holds_no_secret(tmp_path, caplog):
    Desk(tmp_path, failing(Holder())).run(observers=[Breaking()])
    assert f"no event for {MASK}" in caplog.text
    assert f"Breaking(password='{MASK}')" in caplog.text
    assert SECRET not in caplog.text


class Torn(Holder):
    def teardown(self) -> None:
        raise OSError(f"cannot log {SECRET} out")


def test_what_a_worker_logs_holds_no_secret(caplog):
    life = Life(Torn())
    life.set_up(Context(application="App", operator="torn"))
    life.abandon(1)
    assert f"OSError: cannot log {MASK} out" in caplog.text
    assert SECRET not in caplog.text


def test_records_of_others_and_after_the_run_are_left_alone(caplog):
    before = logging.getLogRecordFactory()
    with Masking(lambda: [Holder()]).masked():
        logging.getLogger("author").warning("logged in with %s", SECRET)
        logging.getLogger("dagkit.engine").warning("%d items of %s", 3, SECRET)
        logging.getLogger("dagkit_operators.looks").warning("no answer to %s", SECRET)
    logging.getLogger("dagkit.engine").warning("after %s", SECRET)
    assert caplog.messages == [
        f"logged in with {SECRET}",
        f"3 items of {MASK}",
        f"no answer to {MASK}",
        f"after {SECRET}",
    ]
    assert logging.getLogRecordFactory() is before


@pytest.mark.parametrize(
    "name", ["sqlalchemy.engine", "pyiceberg.io", "confluent_kafka", "deltalake", "kombu.connection"]
)
def test_what_a_client_logs_holds_no_secret(name, caplog):
    with Masking(lambda: [Holder()]).masked():
        logging.getLogger(name).warning("connecting to %s", {"sasl.password": SECRET})
        logging.getLogger(name).warning("connecting with %(password)s", {"password": SECRET})
        logging.getLogger(name).warning(f"connecting as anna:{SECRET}")  # noqa: G004 - as a client may
    assert [MASK in message for message in caplog.messages] == [True, True, True]
    assert SECRET not in caplog.text


def test_a_factory_that_was_set_meanwhile_stays(caplog):
    before = logging.getLogRecordFactory()
    try:
        with Masking(lambda: [Holder()]).masked():
            within = logging.getLogRecordFactory()

            def other(*args: Any, **kwargs: Any) -> logging.LogRecord:
                return within(*args, **kwargs)

            logging.setLogRecordFactory(other)
        assert logging.getLogRecordFactory() is other
        logging.getLogger("dagkit").warning("after %s", SECRET)
        assert caplog.messages == [f"after {SECRET}"]
    finally:
        logging.setLogRecordFactory(before)
