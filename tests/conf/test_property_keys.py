"""The grammar of keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.api.attributes import Scope
from dagkit.conf.grammar.names import Fit, NamePattern, snake
from dagkit.conf.grammar.property_keys import (
    Address,
    AttributeRef,
    Element,
    Keyword,
    Malformed,
    MapKey,
    PortKind,
    PropertyPath,
    parse_key,
)

MEMORY = AttributeRef("MEMORY_MB")
UNIFIER_LIMIT = AttributeRef("UNIFIER_LIMIT")


def operator(sets, name="Filter"):
    return Address(Element.OPERATOR, sets, NamePattern(name))


def port(kind, name="input", operator="Filter"):
    return Address(
        Element.PORT, UNIFIER_LIMIT, NamePattern(operator) if operator else None, None, kind, NamePattern(name)
    )


def named(text):
    return NamePattern(text)


def path(*steps):
    return PropertyPath(steps)


@pytest.mark.parametrize(
    ("key", "address"),
    [
        ("dt.attr.MEMORY_MB", Address(Element.APPLICATION, MEMORY)),
        ("apex.attr.MEMORY_MB", Address(Element.APPLICATION, MEMORY)),
        ("dagkit.attr.MEMORY_MB", Address(Element.APPLICATION, MEMORY)),
        ("stram.attr.MEMORY_MB", Address(Element.APPLICATION, MEMORY)),
        ("dt.testprop1", Address(Element.APPLICATION, path("testprop1"))),
        ("dt.prop.testprop1", Address(Element.APPLICATION, path("testprop1"))),
        ("dt.application.a.attr.MEMORY_MB", Address(Element.APPLICATION, MEMORY, application=named("a"))),
        ("dt.application.a.class", Address(Element.APPLICATION, Keyword("class"), application=named("a"))),
        ("dt.operator.Filter.attr.MEMORY_MB", operator(MEMORY)),
        ("dt.operator.Filter.blockSize", operator(path("blockSize"))),
        ("dt.operator.Filter.prop.blockSize", operator(path("blockSize"))),
        ("dt.operator.Filter.prop.classname", operator(path("classname"))),
        ("dt.operator.Filter.classname", operator(Keyword("classname"))),
        ("dt.operator.Filter.template", operator(Keyword("template"))),
        ("dt.operator.Filter.port", operator(path("port"))),
        ("dt.operator.Filter.port.input.attr.UNIFIER_LIMIT", port(PortKind.PORT)),
        ("dt.operator.Filter.inputport.input.attr.UNIFIER_LIMIT", port(PortKind.INPUT)),
        (
            "dt.application.a.operator.f.outputport.o.unifier.attr.MEMORY_MB",
            Address(Element.UNIFIER, MEMORY, named("f"), named("a"), PortKind.OUTPUT, named("o")),
        ),
        ("dt.port.*.attr.UNIFIER_LIMIT", port(PortKind.PORT, "*", None)),
        ("dt.unifier.attr.MEMORY_MB", Address(Element.UNIFIER, MEMORY)),
        ("dt.stream.records.locality", Address(Element.STREAM, Keyword("locality"), named("records"))),
        ("dt.stream.records.prop.locality", Address(Element.STREAM, Keyword("locality"), named("records"))),
        ("dt.template.t.matchIdRegExp", Address(Element.TEMPLATE, Keyword("matchIdRegExp"), named("t"))),
        ("dt.template.t.prop.blockSize", Address(Element.TEMPLATE, path("blockSize"), named("t"))),
        ("dt.operator.f.mapProperty(key1.dot)", operator(path("mapProperty", MapKey("key1.dot")), "f")),
        ("dt.operator.f.a.b[2]", operator(path("a", "b", 2), "f")),
        ("fs.defaultFS", None),
        ("operator.Filter.blockSize", None),
    ],
)
def test_a_key_names_its_place(key, address):
    assert parse_key(key) == address


@pytest.mark.parametrize(
    ("context", "scope"),
    [
        ("com.datatorrent.api.Context.OperatorContext.", Scope.OPERATOR),
        ("com.datatorrent.api.Context$OperatorContext.", Scope.OPERATOR),
        ("OperatorContext.", Scope.OPERATOR),
        ("com.datatorrent.api.Context.DAGContext.", Scope.APPLICATION),
        ("com.datatorrent.stram.plan.logical.LogicalPlan.", Scope.APPLICATION),
        ("PortContext.", Scope.PORT),
        ("", None),
    ],
)
def test_an_attribute_may_be_written_with_its_context(context, scope):
    assert parse_key(f"dt.attr.{context}CHECKPOINT_WINDOW_COUNT").sets == AttributeRef("CHECKPOINT_WINDOW_COUNT", scope)


@pytest.mark.parametrize(
    ("key", "problem", "help_"),
    [
        ("dt.operator.Filter", "it ends after the name of the operator", "add what to set on Filter"),
        ("dt.operator..attr.X", "it has an empty part between two dots", "remove the dot"),
        ("dt.operator.f.port.input", "it ends after the name of the port", "add what to set on input"),
        ("dt.operator.f.port.input.MEMORY_MB", "what follows port.input is 'MEMORY_MB'", "port.input.attr.NAME"),
        ("dt.stream.s.localty", "a stream has no 'localty'", "did you mean 'locality'"),
        ("dt.attr.OperatrContext.MEMORY_MB", "there is no context 'OperatrContext'", "did you mean 'OperatorContext'"),
        ("dt.template.t.attr.MEMORY_MB", "a template holds properties, not attributes", "operator.NAME"),
        ("dt.operator.f.a[b]", "'a[b]' is not a property", "name[0]"),
        ("dt.", "it has an empty part", "remove the dot"),
        ("dt.operator(Tok.*).attr.X", "the name 'Tok.*' has a dot", r"[dt.operator.'Tok\w*']"),
        ("dt.operator.f.inputport(in.*).attr.X", "the name 'in.*' has a dot", r"write \w*"),
        ("dt.operator.Tok.*.attr.X", "the dot behind 'Tok' divides the key", r"write \w* instead of .*"),
        ("dt.template.T.+.prop.x", "the dot behind 'T' divides the key", "names have no dots"),
        ("dt." + "a." * 50_000, "it is longer than 4096 characters", ""),
        ("dt.a" + ".a" * 100, "it has more than 100 steps", ""),
        ("dt.a" + "[0]" * 100, "it has more than 100 steps", ""),
        ("dt.a[1111111111]", "'a' has an index of more than 9 digits", ""),
        ("DAGKIT_OPERATOR__A__B__" + "x" * 5000, "it is longer than 4096 characters", ""),
    ],
    ids=lambda value: value[:30],
)
def test_a_malformed_key_says_what_to_write(key, problem, help_):
    fault = parse_key(key)
    assert fault.problem.startswith(problem)
    assert help_ in fault.help


def folded(name):
    return NamePattern(name, folded=True)


@pytest.mark.parametrize(
    ("variable", "address"),
    [
        ("OPERATOR__BLOCK_READER__PROP__A_B", Address(Element.OPERATOR, path("a_b"), folded("BLOCK_READER"))),
        ("OPERATOR__Block_reader__A_B", Address(Element.OPERATOR, path("a_b"), folded("BLOCK_READER"))),
        ("ATTR__MEMORY_MB", Address(Element.APPLICATION, MEMORY)),
        (
            "OPERATOR__F__PORT__INPUT__ATTR__UNIFIER_LIMIT",
            Address(Element.PORT, UNIFIER_LIMIT, folded("F"), None, PortKind.PORT, folded("INPUT")),
        ),
        ("STREAM__RECORDS__LOCALITY", Address(Element.STREAM, Keyword("locality"), folded("RECORDS"))),
        ("HOME", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_variable_names_the_same_places(variable, address):
    assert parse_key(f"DAGKIT_{variable}") == address


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("dt.operator.f.prop.blockSize", "apex.operator.f.block_size"),
        pytest.param("dt.attr.MEMORY_MB", "dt.application.*.attr.MEMORY_MB", id="the root is application.*"),
        pytest.param("dagkit.stream.s.locality", "stram.stream.s.prop.locality", id="the prefix"),
    ],
)
def test_what_does_not_distinguish_keys(one, other):
    assert parse_key(one).identity == parse_key(other).identity


def test_the_keys_of_a_map_are_distinguished_by_case():
    assert parse_key("dt.operator.f.map.aKey").identity != parse_key("dt.operator.f.map.a_key").identity


NAMES = st.text(st.characters(exclude_characters=".()", codec="utf-8"), min_size=1)


@given(NAMES, NAMES, st.sampled_from(["dt.", "apex.", "dagkit.", "stram."]))
def test_any_name_without_a_dot_can_be_addressed(operator, port, prefix):
    address = parse_key(f"{prefix}operator.{operator}.port.{port}.attr.QUEUE_CAPACITY")
    assert (address.name.text, address.port.text) == (operator, port)


@given(st.text())
def test_no_text_breaks_the_grammar(text):
    assert isinstance(parse_key(f"dt.{text}"), Address | Malformed)


@pytest.mark.parametrize(
    ("pattern", "name", "fit"),
    [
        pytest.param("Block-reader", "Block-reader", Fit.EXACT, id="a name is itself"),
        pytest.param("*", "anything at all", Fit.STAR, id="a lone star is any name"),
        pytest.param("op[12]", "op2", Fit.PATTERN, id="a pattern is tried"),
        pytest.param("op[12]", "op12", Fit.NOT, id="a pattern is matched against the whole name"),
        pytest.param("op", "operator", Fit.NOT, id="a plain name is no prefix"),
        pytest.param("Module$inner", "Module$inner", Fit.EXACT, id="a module's inner name works by equality"),
        (r"Module\$\w+", "Module$inner", Fit.PATTERN),
        pytest.param("C++", "C++", Fit.EXACT, id="a name that is no valid pattern works by equality"),
        pytest.param("*", "*", Fit.EXACT, id="equality outranks the pattern"),
    ],
)
def test_fit(pattern, name, fit):
    assert NamePattern(pattern).fit(name) is fit


def test_a_folded_name_fits_every_name_that_it_spells():
    pattern, spelled = NamePattern("BLOCK_READER", folded=True), ["Block-reader", "block_reader", "Block reader"]
    assert [name for name in (*spelled, "Blockreader") if pattern.fit(name)] == spelled


SNAKES = {"blockSize": "block_size", "HTTPServer": "http_server", "block_size": "block_size"}


@pytest.mark.parametrize(("camel", "snaked"), SNAKES.items())
def test_snake(camel, snaked):
    assert snake(camel) == snaked
