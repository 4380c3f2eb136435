"""The lines of `dagkit --version`: what is installed here, as bug reports need it."""

import importlib.metadata
import importlib.util
import platform
import sys
from collections.abc import Iterator

from dagkit.api.traces import spoken
from dagkit.cli.application.importing import authored, imported
from dagkit.cli.application.operator_lookup import packages
from dagkit.errors import DagkitError
from dagkit.ground.names_of_apex import member


def about() -> Iterator[str]:
    """The versions, and the lines that each library's function `about` returns."""
    yield f"dagkit {sys.modules['dagkit'].__version__}"
    yield f"Python {platform.python_version()}, {_version('pyspark')}, {_version('pyarrow')}"
    for package in packages():
        line = _about(package)
        if line is not None:
            yield f"{package}: {line}"


def _version(package: str) -> str:
    """The installed version; imports nothing."""
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{package} of unknown version" if importlib.util.find_spec(package) else f"no {package}"


def _about(package: str) -> str | None:
    try:
        about_library = member(imported(package), "about")
        with authored(package, "its function about failed"):
            return str(about_library()) if callable(about_library) else None
    except DagkitError as broken:
        return spoken(broken.__cause__ or broken)
