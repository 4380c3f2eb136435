"""The folder of a compiled application, if a launch is given no other one."""

from pathlib import Path
from urllib.parse import quote

from dagkit.api.application import HOME
from dagkit.api.attributes import DagContext
from dagkit.compiler.steps import Compilation


def application_path(compilation: Compilation) -> str:
    """The application's folder: its APPLICATION_PATH, else one named after it below `HOME`."""
    settings = compilation.graph.attributes
    setting = settings.get(DagContext.APPLICATION_PATH)
    if setting is not None and setting.value:
        return str(setting.value)
    return str(Path(HOME) / quote(compilation.application, safe=" "))
