"""Resolving: what configuration says about each operator, port and stream takes its place in the graph."""

from collections.abc import Mapping

from dagkit.api.application import Module, StreamingApplication
from dagkit.api.config import Config, Origin
from dagkit.errors import Diagnostic
from dagkit.graph import Graph


class Resolver:
    """One configuration, held against one application; it remembers which keys matched something."""

    def __init__(self, conf: Config, application: str, author: type | None) -> None:
        self.conf = conf
        self.application = application

    def configured_application(
        self, application: StreamingApplication
    ) -> tuple[StreamingApplication, Mapping[str, Origin], list[Diagnostic]]:
        return application, {}, []

    def configured_module(self, name: str, module: Module) -> Module:
        return module

    def resolve(self, graph: Graph, *, allow_unknown: bool) -> tuple[Graph, list[Diagnostic]]:
        return graph, []
