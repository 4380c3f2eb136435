"""The base classes of applications and of modules, which are reusable parts of a graph."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from dagkit.api.component import Component
from dagkit.api.configuration import Config
from dagkit.api.dag import Dag


class StreamingApplication(Component):
    """A graph of operators. Its fields are settable from property files before `populate_dag` runs."""

    name: ClassVar[str] = ""
    """The application's name. If it is empty, the name of the class is used."""

    @property
    def application_name(self) -> str:
        """The name in property files and reports, unless the attribute APPLICATION_NAME sets another."""
        return type(self).name or type(self).__qualname__

    @abstractmethod
    def populate_dag(self, dag: Dag, conf: Config) -> None:
        """Add the operators and the streams to `dag`."""


class Module(Component):
    """A reusable part of a graph. It has ports, and an application adds and connects it like an operator."""

    @abstractmethod
    def populate_dag(self, dag: Dag, conf: Config) -> None:
        """Add the operators and the streams to `dag`, and expose an inner port for each port of the module."""


class FunctionApplication(StreamingApplication):
    """An application made from a function `populate_dag(dag, conf)`."""

    populate: Callable[[Dag, Config], None]
    called: str = ""

    @property
    def application_name(self) -> str:
        return self.called or getattr(self.populate, "__module__", "application")

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        self.populate(dag, conf)
