"""What notebooks show: a Dag, a graph or a plan as SVG, and as text where there are no pictures."""

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
    """What `_repr_mimebundle_` answers. A Dag is drawn as it stands, half-wired or wrong, and a plan as it will run."""
    picture = physical(drawn) if isinstance(drawn, Plan) else logical(_graph(drawn))
    try:
        return {"image/svg+xml": svg(picture), "text/plain": text(picture)}
    except DrawingFailed:
        return {"text/plain": text(picture)}


def _graph(drawn: Dag | Graph) -> Graph:
    return drawn if isinstance(drawn, Graph) else graph_of(drawn, "")[0]
