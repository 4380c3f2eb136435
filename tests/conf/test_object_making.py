"""Objects as text and as JSON."""

import datetime as dt
import decimal
import sys
import uuid
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.api.operators import DelayOperator
from dagkit.api.partitioning import Partitioner, StatelessPartitioner
from dagkit.conf.values.classes import ClassNotFound, find_class
from dagkit.conf.values.conversion import Conversion
from dagkit.conf.values.object_making import (
    Recipe,
    Unfit,
    make,
    object_in_json,
    parse_json,
    parse_object,
    parse_objects,
    split_list,
)
from tests.cases import cases
from tests.conf import samples
from tests.conf.samples import Bean

BEAN = "tests.conf.samples.Bean"


@pytest.mark.parametrize(
    ("text", "constructed", "int_val", "string_val"),
    [
        pytest.param(f"{BEAN}", None, -1, "unset", id="a class alone is made without arguments"),
        pytest.param(f"{BEAN}:ctor", "ctor", -1, "unset", id="what follows is the argument"),
        pytest.param(f"{BEAN}:ctor:intVal=10:stringVal=strVal", "ctor", 10, "strVal", id="then properties"),
        pytest.param(f"{BEAN}:ctor:", "ctor", -1, "unset", id="no properties after an argument"),
        pytest.param(f"{BEAN}:", None, -1, "unset", id="an empty argument is none"),
        pytest.param(f"{BEAN}: ", " ", -1, "unset", id="a blank is an argument"),
        pytest.param(f"{BEAN}::", None, -1, "unset", id="nothing after two colons"),
        pytest.param(f"{BEAN}::intVal=1", None, 1, "unset", id="properties without an argument"),
        pytest.param(f"{BEAN}::intVal=1:stringVal=", None, 1, "", id="a property may be empty"),
        pytest.param(f"{BEAN}: :intVal=1", " ", 1, "unset", id="a blank and a property"),
        ("tests.conf.samples:Bean:ctor:int_val=10", "ctor", 10, "unset"),
        (f"{BEAN}:s3\\://bucket:string_val=a\\:b=c", "s3://bucket", -1, "a:b=c"),
    ],
)
def test_the_grammar_of_objects(text, constructed, int_val, string_val):
    bean = make(Conversion(), parse_object(text), Bean)
    assert (bean.constructed, bean.int_val, bean.string_val) == (constructed, int_val, string_val)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tests.conf.samples.Bean::intVal", "'intVal' is not property=value"),
        pytest.param("tests.conf.samples.Bean::intVal=ten", "it must be a whole number", id="a value of another type"),
        ("tests.conf.samples.Bean::intVall=1", "Bean has no property 'intVall'; did you mean 'int_val'"),
        ("tests.conf.samples.Reader:x", "Reader takes no argument"),
        ("tests.conf.samples.Point", "Point cannot be made without an argument"),
        ("tests.conf.samples.Reader::blockSize=x", "Reader refuses it: block_size: input should be a valid integer"),
        ("StatelessPartitioner:0", "StatelessPartitioner refuses it: partition_count: input should be greater than 0"),
        pytest.param("Partitioner", "Partitioner is abstract", id="a class that cannot be made"),
        pytest.param(":x", "it must have the name of a class", id="no class"),
        pytest.param("", "it must have the name of a class", id="no text"),
    ],
)
def test_what_cannot_be_made(text, problem):
    with pytest.raises(Unfit, match=problem):
        make(Conversion(), parse_object(text), object)


def test_a_list_of_objects():
    assert parse_objects("a.B:1 , c.D::x=1\\,2") == [Recipe("a.B", "1"), Recipe("c.D", None, (("x", "1,2"),))]
    made = make(Conversion(), parse_object("com.datatorrent.common.partitioner.StatelessPartitioner:3"), Partitioner)
    assert made == StatelessPartitioner(3)


@cases(
    "data, recipe",
    ("as Apex dumps it", {"@class": "a.B", "x": 1}, Recipe("a.B", None, (("x", 1),))),
    ("as plans hold it", {"class": "a.B", "x": 1}, Recipe("a.B", None, (("x", 1),))),
    ("as Apex reads it", {"a.B": {"x": 1}}, Recipe("a.B", None, (("x", 1),))),
    ("an inner class", {"a.Outer$Inner": {}}, Recipe("a.Outer$Inner")),
    ("an object inside is no class", {"x": {"y": 1}}, None),
    ("no class at all", {"x": 1}, None),
)
def test_objects_in_json(data, recipe):
    assert object_in_json(data) == recipe


PARTS = st.text(st.characters(codec="utf-8", exclude_characters="\\")).map(str.strip).filter(bool)


@given(st.lists(PARTS))
def test_a_list_is_split_where_no_backslash_stands(parts):
    assert split_list(" , ".join(part.replace(",", "\\,") for part in parts)) == parts


@pytest.mark.parametrize("depth", [101, 5000])
def test_json_nests_to_a_bound(depth):
    with pytest.raises(Unfit, match="it nests lists and objects deeper than 100"):
        parse_json("[" * depth + "]" * depth)
    assert parse_json("[" * 100 + "]" * 100)


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
        ("datetime.date", dt.date),
        ("decimal:Decimal", decimal.Decimal),
        ("uuid.UUID", uuid.UUID),
        ("java.util.Map", dict),
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
