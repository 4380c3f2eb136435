"""A populate_dag that does not reach its end: the reason is always reported."""

import sys
from collections.abc import Iterator, Sequence

import pytest

from dagkit import (
    Config,
    Dag,
    Module,
    OperatorContext,
    Partition,
    Partitioner,
    PartitioningContext,
    StreamingApplication,
)
from dagkit.compiler import compile_application
from dagkit.compiler.draw import where_of
from dagkit.conf.declared.declarative import declared_application
from dagkit.errors import ApplicationFaults
from tests.compiler.cast import Source, Step, faults


class Mute(Exception):
    """An exception that fails to say anything."""

    def __str__(self) -> str:
        raise RuntimeError


class Broken(Module):
    """A module that ends the process."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        sys.exit(3)


class Leaving(Partitioner):
    """A partitioner that ends the process."""

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        sys.exit(3)


def leaves(dag: Dag, conf: Config) -> None:
    sys.exit("enough")


def fails_mutely(dag: Dag, conf: Config) -> None:
    raise Mute


def yields(dag: Dag, conf: Config) -> Iterator[int]:
    yield 1


async def waits(dag: Dag, conf: Config) -> None:
    """A coroutine that nothing awaits."""


def holds_a_broken_module(dag: Dag, conf: Config) -> None:
    dag.add_module("broken", Broken())


@pytest.mark.parametrize(
    ("populate", "problem"),
    [
        (leaves, "raised SystemExit: enough"),
        (fails_mutely, "raised Mute"),
        (yields, "is a generator"),
        (waits, "is a coroutine"),
        (holds_a_broken_module, "populate_dag of Broken raised SystemExit: 3"),
    ],
)
def test_what_keeps_it_is_reported(populate, problem):
    with pytest.raises(ApplicationFaults) as raised:
        compile_application(populate)
    (fault,) = [fault for fault in raised.value.diagnostics if fault.severity == "error"]
    assert fault.code == "populate-failed"
    assert problem in fault.problem
    assert fault.where is not None
    assert fault.where.file == "tests/compiler/test_unfinished.py"


def test_a_class_in_place_of_an_application_is_reported():
    class Words(StreamingApplication):
        def populate_dag(self, dag: Dag, conf: Config) -> None:
            """Add nothing."""

    with pytest.raises(ApplicationFaults) as raised:
        compile_application(Words)
    (fault,) = raised.value.diagnostics
    assert (fault.problem, fault.help) == ("Words is a class, not an application", "pass Words()")


def test_the_keyboard_interrupts():
    def interrupted(dag: Dag, conf: Config) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_application(interrupted)


def test_a_partitioner_that_leaves_is_reported():
    dag = Dag()
    last = dag.add_operator("last", Step())
    dag.add_stream("on", dag.add_operator("source", Source()).out, last.one)
    dag.set_operator_attribute(last, OperatorContext.PARTITIONER, Leaving())
    (fault,) = faults(dag)
    assert (fault.code, fault.problem) == ("partition-invalid", "the Leaving of last raised SystemExit: 3")


def test_a_declared_application_begins_in_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declaring = tmp_path / "declared.json"
    declaring.write_text('{"operators": [{"name": "source", "class": "tests.compiler.cast.Source"}]}')
    where = where_of(declared_application(declaring))
    assert where is not None
    assert (where.file, where.line) == ("declared.json", None)
