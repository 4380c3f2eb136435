"""Names in keys: literal, patterns, folded."""

import pytest

from dagkit.conf.grammar.names import Fit, NamePattern, snake


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
