"""The base classes of applications and of modules, which are reusable parts of a graph."""

import os
import sys
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from dagkit.api.component import Component
from dagkit.api.configuration import Config
from dagkit.api.dag import Dag

HOME = ".dagkit"
"""The folder for the ledgers of applications that set no APPLICATION_PATH."""


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
        if self.called:
            return self.called
        module: str = getattr(self.populate, "__module__", "application")
        return name_of_program() if module == "__main__" else module

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        self.populate(dag, conf)


def name_of_program() -> str:
    """The name of an application that a function of this program or notebook makes.

    It is that of the file, as on the command line, so that programs do not share a ledger; without one, `interactive`.
    Up to November 2026 all were called `__main__`: where a ledger has that name, they still are, and resume in it.
    """
    # A new name alone would begin a new ledger after an upgrade, and process everything again. Rejected: comparing
    # plans to find the program to which a ledger belongs. A program that changed with the upgrade would begin again.
    if Path(HOME, "__main__").is_dir():
        return "__main__"
    main = sys.modules["__main__"]
    files = (
        getattr(main, "__file__", None),
        getattr(main, "__vsc_ipynb_file__", None),
        os.environ.get("JPY_SESSION_NAME"),
    )
    file = next((Path(file).absolute() for file in files if file), None)
    if file is None:
        return "interactive"
    return file.parent.name if file.stem == "__main__" else name_after(file)


def name_after(file: Path) -> str:
    """The name of an application that a file defines: that of the folder for `app.py`."""
    file = file.absolute()
    return file.parent.name if file.stem == "app" else file.stem
