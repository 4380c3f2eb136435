"""A populate_dag that does not reach its end: the reason is always reported."""

import sys

import pytest

from dagkit import StreamingApplication
from dagkit.compiler import compile_application
from dagkit.compiler.draw import where_of
from dagkit.conf.declared.declarative import declared_application
from tests.compiler.cast import faults
from tests.compiler.sketches import module


class Mute(Exception):
    """An exception that fails to say anything."""

    def __str__(self):
        raise RuntimeError


@module()
def leaving(self, dag):
    sys.exit(3)


def leaves(dag, conf):
    sys.exit("enough")


def fails_mutely(dag, conf):
    raise Mute


def yields(dag, conf):
    yield 1


async def waits(dag, conf):
    """A coroutine that nothing awaits."""


def holds_a_broken_module(dag, conf):
    dag.add_module("broken", leaving())


@pytest.mark.parametrize(
    ("populate", "problem"),
    [
        (leaves, "raised SystemExit: enough"),
        (fails_mutely, "raised Mute"),
        (yields, "is a generator"),
        (waits, "is a coroutine"),
        (holds_a_broken_module, "populate_dag of leaving raised SystemExit: 3"),
    ],
)
def test_what_keeps_it_is_reported(populate, problem):
    (fault,) = faults(populate)
    assert fault.code == "populate-failed"
    assert problem in fault.problem
    assert fault.where.file == "tests/compiler/test_unfinished.py"


def test_a_class_in_place_of_an_application_is_reported_and_the_keyboard_interrupts():
    class Words(StreamingApplication):
        def populate_dag(self, dag, conf):
            raise KeyboardInterrupt

    (fault,) = faults(Words)
    assert (fault.problem, fault.help) == ("Words is a class, not an application", "pass Words()")
    with pytest.raises(KeyboardInterrupt):
        compile_application(Words())


def test_a_declared_application_begins_in_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declaring = tmp_path / "declared.json"
    declaring.write_text('{"operators": [{"name": "source", "class": "tests.compiler.cast.Source"}]}')
    where = where_of(declared_application(declaring))
    assert (where.file, where.line) == ("declared.json", None)
