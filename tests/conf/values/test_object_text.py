"""Objects as text and as JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.api.partitioning import Partitioner, StatelessPartitioner
from dagkit.conf.values.classes import ClassNotFound
from dagkit.conf.values.conversion import Conversion
from dagkit.conf.values.object_making import make
from dagkit.conf.values.object_text import (
    Recipe,
    Unfit,
    object_in_json,
    parse_json,
    parse_object,
    parse_objects,
    split_list,
)
from tests.conf.samples import Bean

BEAN = "tests.conf.samples.Bean"


@pytest.mark.parametrize(
    ("text", "constructed", "int_val", "string_val"),
    [
        (f"{BEAN}", None, -1, "unset"),
        (f"{BEAN}:ctor", "ctor", -1, "unset"),
        (f"{BEAN}:ctor:intVal=10:stringVal=strVal", "ctor", 10, "strVal"),
        (f"{BEAN}:ctor:", "ctor", -1, "unset"),
        (f"{BEAN}:", None, -1, "unset"),
        (f"{BEAN}: ", " ", -1, "unset"),
        (f"{BEAN}::", None, -1, "unset"),
        (f"{BEAN}::intVal=1", None, 1, "unset"),
        (f"{BEAN}::intVal=1:stringVal=", None, 1, ""),
        (f"{BEAN}: :intVal=1", " ", 1, "unset"),
        ("tests.conf.samples:Bean:ctor:int_val=10", "ctor", 10, "unset"),
        (f"{BEAN}:s3\\://bucket:string_val=a\\:b=c", "s3://bucket", -1, "a:b=c"),
    ],
    ids=[
        "a class alone is made without arguments",
        "what follows is the argument",
        "then properties",
        "no properties after an argument",
        "an empty argument is none",
        "a blank is an argument",
        "nothing after two colons",
        "properties without an argument",
        "a property may be empty",
        "a blank and a property",
        "the first colon may stand inside the name",
        "a colon in a value has a backslash",
    ],
)
def test_the_grammar_of_objects(text, constructed, int_val, string_val):
    bean = make(Conversion(), parse_object(text), Bean)
    assert (bean.constructed, bean.int_val, bean.string_val) == (constructed, int_val, string_val)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tests.conf.samples.Bean::intVal", "'intVal' is not property=value"),
        ("tests.conf.samples.Bean::intVal=ten", "it must be a whole number"),
        ("tests.conf.samples.Bean::intVall=1", "Bean has no property 'intVall'; did you mean 'int_val'"),
        ("tests.conf.samples.Reader:x", "Reader takes no argument"),
        ("tests.conf.samples.Point", "Point cannot be made without an argument"),
        ("tests.conf.samples.Reader::blockSize=x", "Reader refuses it: block_size: input should be a valid integer"),
        ("StatelessPartitioner:0", "StatelessPartitioner refuses it: partition_count: input should be greater than 0"),
        ("Partitioner", "Partitioner is abstract"),
        (":x", "it must have the name of a class"),
        ("", "it must have the name of a class"),
    ],
    ids=[
        "a property without a value",
        "a value of another type",
        "a property that is not there",
        "an argument that the class does not take",
        "an argument that is missing",
        "a value that a component refuses",
        "a value that a model refuses",
        "a class that cannot be made",
        "no class",
        "no text",
    ],
)
def test_what_cannot_be_made(text, problem):
    with pytest.raises(Unfit, match=problem):
        make(Conversion(), parse_object(text), object)


def test_a_class_that_is_not_there_is_its_own_fault():
    with pytest.raises(ClassNotFound, match=r"there is no class 'com\.acme\.Nobody'"):
        make(Conversion(), parse_object("com.acme.Nobody:x"), Bean)


def test_a_list_of_objects():
    assert parse_objects("a.B:1 , c.D::x=1\\,2") == [Recipe("a.B", "1"), Recipe("c.D", None, (("x", "1,2"),))]


@pytest.mark.parametrize(
    ("data", "recipe"),
    [
        ({"@class": "a.B", "x": 1}, Recipe("a.B", None, (("x", 1),))),
        ({"class": "a.B", "x": 1}, Recipe("a.B", None, (("x", 1),))),
        ({"a.B": {"x": 1}}, Recipe("a.B", None, (("x", 1),))),
        ({"a.Outer$Inner": {}}, Recipe("a.Outer$Inner")),
        ({"x": {"y": 1}}, None),
        ({"x": 1}, None),
    ],
    ids=[
        "as Apex dumps it",
        "as plans hold it",
        "as Apex reads it",
        "an inner class",
        "an object inside is no class",
        "no class at all",
    ],
)
def test_objects_in_json(data, recipe):
    assert object_in_json(data) == recipe


def test_a_partitioner_as_apex_writes_it():
    made = make(Conversion(), parse_object("com.datatorrent.common.partitioner.StatelessPartitioner:3"), Partitioner)
    assert made == StatelessPartitioner(3)


PARTS = st.text(st.characters(codec="utf-8", exclude_characters="\\")).map(str.strip).filter(bool)


@given(st.lists(PARTS))
def test_a_list_is_split_where_no_backslash_stands(parts):
    assert split_list(" , ".join(part.replace(",", "\\,") for part in parts)) == parts


@pytest.mark.parametrize("depth", [101, 5000])
def test_json_nests_to_a_bound(depth):
    with pytest.raises(Unfit, match="it nests lists and objects deeper than 100"):
        parse_json("[" * depth + "]" * depth)
    assert parse_json("[" * 100 + "]" * 100)
