"""The application as a frozen graph: what a Dag recorded, in the order of declaration."""

from dagkit.graph.build import graph_of
from dagkit.graph.frozen import SEPARATOR, End, Graph, Node, Settings, Stream

__all__ = ["SEPARATOR", "End", "Graph", "Node", "Settings", "Stream", "graph_of"]
