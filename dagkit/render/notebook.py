"""Shows a Dag, a graph or a plan in notebooks: as SVG, or as text if pictures are not supported."""

from collections.abc import Mapping

from dagkit.api.dag import Dag
from dagkit.errors import DrawingFailed
from dagkit.graph import Graph, graph_of
from dagkit.plan import Plan
from dagkit.render.logical import logical
from dagkit.render.physical import physical
from dagkit.render.svg import svg
from dagkit.render.text import text


def mimebundle(drawn: Dag | Graph | Plan) -> Mapping[str, str]:
    """The result of `_repr_mimebundle_`: the logical picture of a Dag, even incomplete; the physical one of a plan."""
    picture = physical(drawn) if isinstance(drawn, Plan) else logical(_graph(drawn))
    try:
        return {"image/svg+xml": svg(picture), "text/plain": text(picture)}
    except DrawingFailed:
        return {"text/plain": text(picture)}


def _graph(drawn: Dag | Graph) -> Graph:
    return drawn if isinstance(drawn, Graph) else graph_of(drawn, "")[0]
