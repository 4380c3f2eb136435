"""A Dag as notebooks show it: the logical picture as SVG, and as text where there are no pictures."""

from collections.abc import Mapping

from dagkit.api.dag import Dag
from dagkit.errors import DrawingFailed
from dagkit.graph import graph_of
from dagkit.render.logical import logical
from dagkit.render.svg import svg
from dagkit.render.text import text


def mimebundle(dag: Dag) -> Mapping[str, str]:
    """What `Dag._repr_mimebundle_` answers. A Dag is drawn as it stands, half-wired or wrong."""
    graph, _ = graph_of(dag, "")
    picture = logical(graph)
    try:
        return {"image/svg+xml": svg(picture), "text/plain": text(picture)}
    except DrawingFailed:
        return {"text/plain": text(picture)}
