"""The application as a frozen graph: what a Dag wrote down, in the order in which it was written."""

from dagkit.graph.build import graph_of
from dagkit.graph.frozen import SEPARATOR, End, Graph, Node, Setting, Settings, Stream

__all__ = ["SEPARATOR", "End", "Graph", "Node", "Setting", "Settings", "Stream", "graph_of"]
