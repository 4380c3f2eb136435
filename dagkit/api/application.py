"""What an author subclasses: the application, and the module that packs a piece of graph for reuse."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from dagkit.api.component import Component
from dagkit.api.configuration import Config
from dagkit.api.dag import Dag


class StreamingApplication(Component):
    """A graph of operators. Its fields are settable from property files before `populate_dag` runs."""

    name: ClassVar[str] = ""
    """The application's name; where it is empty, the class's own."""

    @property
    def application_name(self) -> str:
        """What property files and reports call the application, until APPLICATION_NAME says otherwise."""
        return type(self).name or type(self).__qualname__

    @abstractmethod
    def populate_dag(self, dag: Dag, conf: Config) -> None:
        """Add the operators and the streams."""


class Module(Component):
    """A piece of graph with ports of its own, which stands in a bigger graph like an operator."""

    @abstractmethod
    def populate_dag(self, dag: Dag, conf: Config) -> None:
        """Add the operators and the streams, and `dag.expose` a port of one of them for each port of the module."""


class FunctionApplication(StreamingApplication):
    """A plain function `populate_dag(dag, conf)`, as an application."""

    populate: Callable[[Dag, Config], None]
    called: str = ""

    @property
    def application_name(self) -> str:
        return self.called or getattr(self.populate, "__module__", "application")

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        self.populate(dag, conf)
