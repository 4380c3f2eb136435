"""The formats of a picture, by their names on the command line, and its form in notebooks."""

from collections.abc import Callable, Mapping
from typing import Literal, get_args

from dagkit.api.dag import Dag
from dagkit.errors import DrawingFailed
from dagkit.graph import Graph, graph_of
from dagkit.plan import Plan
from dagkit.render.content import MANY
from dagkit.render.dot import dot
from dagkit.render.engines import draw_dot
from dagkit.render.folding import folded
from dagkit.render.logical import logical
from dagkit.render.mermaid import mermaid
from dagkit.render.physical import physical
from dagkit.render.picture import Picture, to_json
from dagkit.render.svg import svg
from dagkit.render.text import text

Format = Literal["dot", "svg", "png", "pdf", "mermaid", "text", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
BINARY: frozenset[Format] = frozenset({"png", "pdf"})
"""Formats that must not be written to a terminal."""

SHARP = 160
"""Dots per inch of a PNG with few boxes; one with many boxes is large enough at the default."""

_WRITERS: Mapping[str, Callable[[Picture], str]] = {
    "dot": dot,
    "svg": svg,
    "mermaid": mermaid,
    "text": text,
    "json": to_json,
}


def render(picture: Picture, form: Format) -> bytes:
    """The picture in a format, text as UTF-8; too large ones are folded, except as text and JSON. Raise
    `DrawingFailed` if no installed engine can draw it.
    """
    if form not in ("text", "json"):
        picture = folded(picture)
    if form in _WRITERS:
        return _WRITERS[form](picture).encode()
    sharp = form == "png" and len(picture.boxes) <= MANY
    return draw_dot(dot(picture, dots_per_inch=SHARP if sharp else None), form)


def mimebundle(drawn: Dag | Graph | Plan) -> Mapping[str, str]:
    """The result of `_repr_mimebundle_`: the logical picture of a Dag, even incomplete; the physical one of a plan."""
    graph = graph_of(drawn, "")[0] if isinstance(drawn, Dag) else drawn
    picture = physical(graph) if isinstance(graph, Plan) else logical(graph)
    try:
        return {"image/svg+xml": svg(picture), "text/plain": text(picture)}
    except DrawingFailed:
        return {"text/plain": text(picture)}
