"""Names in keys: literal, patterns, folded."""

import pytest

from dagkit.conf.grammar.names import Fit, NamePattern, bare, folded, snake


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


def test_a_lone_star_ranks_below_a_pattern_and_above_a_key_without_a_name():
    assert Fit.ANYONE < NamePattern("*").fit("op") < NamePattern("o.").fit("op") < NamePattern("op").fit("op")


def test_a_folded_name_fits_every_name_that_it_spells():
    pattern, spelled = NamePattern("BLOCK_READER", folded=True), ["Block-reader", "block_reader", "Block reader"]
    assert [name for name in (*spelled, "Blockreader") if pattern.fit(name)] == spelled


SNAKES = {"blockSize": "block_size", "filePatternRegularExp": "file_pattern_regular_exp", "HTTPServer": "http_server"}


@pytest.mark.parametrize(("camel", "snaked"), [*SNAKES.items(), ("block_size", "block_size")])
def test_snake(camel, snaked):
    assert snake(camel) == snaked


def test_every_spelling_of_a_property_is_bare_the_same_and_folding_keeps_letters_and_digits_alone():
    assert {bare(name) for name in ("blockSize", "block_size", "BLOCK_SIZE", "BlockSize")} == {"blocksize"}
    assert folded("Record-writer 2") == "RECORD_WRITER_2"


def test_a_name_that_cannot_be_compiled_says_why():
    assert NamePattern("*reader").fault == "no argument for repetition operator: *"
    assert NamePattern("*reader").fit("a reader") is Fit.NOT
