"""Classes and functions by name."""

import sys
from types import ModuleType

import pytest

from dagkit.api.operators import DelayOperator
from dagkit.api.partitioning import StatelessPartitioner
from dagkit.conf.values.classes import ClassNotFound, find_class, find_function
from tests.conf import samples


@pytest.mark.parametrize(
    ("name", "found"),
    [
        pytest.param("tests.conf.samples.Bean", samples.Bean, id="a dotted path"),
        pytest.param("tests.conf.samples:Bean", samples.Bean, id="a module and a class"),
        pytest.param("StatelessPartitioner", StatelessPartitioner, id="a class of dagkit by its simple name"),
        ("com.datatorrent.common.partitioner.StatelessPartitioner", StatelessPartitioner),
        pytest.param("com.datatorrent.api.Operator$DelayOperator", DelayOperator, id="an inner class of Java"),
        pytest.param("str", str, id="a class of Python itself"),
        pytest.param("java.lang.String", str, id="a class of Java itself"),
        pytest.param(" int ", int, id="blanks around it"),
    ],
)
def test_classes_are_found(name, found):
    assert find_class(name) is found


def test_a_library_of_operators_is_searched_after_the_module_of_the_application(monkeypatch):
    assert find_class("Reader", home="tests.conf.samples") is samples.Reader
    library = ModuleType("dagkit_operators")
    library.__file__, library.LineReader = None, samples.Reader
    monkeypatch.setitem(sys.modules, "dagkit_operators", library)
    for name in ("com.datatorrent.lib.io.fs.LineReader", "LineReader"):
        assert find_class(name) is samples.Reader


@pytest.mark.parametrize(
    ("name", "problem", "help_"),
    [
        ("StatelesPartitioner", "there is no class 'StatelesPartitioner'", "did you mean 'StatelessPartitioner'?"),
        ("com.acme.Nothing42", "there is no class 'com.acme.Nothing42'", "write it as package.module:Class"),
        ("tests.conf.samples:Beam", "tests.conf.samples has no 'Beam'", "did you mean 'Bean'?"),
        ("tests.conf.smples:Bean", "there is no module 'tests.conf.smples'", "check its spelling and the Python path"),
        ("tests.conf.samples.long_enough", "is not a class, but a function", "name a class"),
        pytest.param("", "there is no class ''", "write it as package.module:Class", id="no name"),
    ],
)
def test_what_is_not_found_says_what_to_try(name, problem, help_):
    with pytest.raises(ClassNotFound, match=problem) as raised:
        find_class(name)
    assert raised.value.help == help_


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import not_there_at_all", "'broken' needs the module 'not_there_at_all'"),
        ("1 / 0", "'broken' cannot be imported: ZeroDivisionError: division by zero"),
        pytest.param("def (", "'broken' cannot be imported: SyntaxError", id="a module that is no Python"),
    ],
)
def test_a_module_that_breaks_is_not_a_module_that_is_missing(tmp_path, monkeypatch, code, problem):
    (tmp_path / "broken.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ClassNotFound, match=problem):
        find_class("broken:Thing")


def test_functions_are_found():
    assert find_function("tests.conf.samples:long_enough") is samples.long_enough
    assert find_function("tests.conf.samples.long_enough") is samples.long_enough
    with pytest.raises(ClassNotFound, match="is not callable; it is"):
        find_function("tests.conf.samples:Reader.model_config")
