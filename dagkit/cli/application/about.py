"""What is installed here, in a few lines: for `dagkit --version`, and for whoever reports a fault."""

import importlib.metadata
import importlib.util
import platform
import sys
from collections.abc import Iterator

from dagkit.api.traces import spoken
from dagkit.cli.application.importing import authored, imported
from dagkit.cli.application.operator_lookup import packages
from dagkit.errors import DagkitError


def about() -> Iterator[str]:
    """The versions, and what each library of operators says of itself by its function `about`."""
    yield f"dagkit {sys.modules['dagkit'].__version__}"
    yield f"Python {platform.python_version()}, {_version('pyspark')}, {_version('pyarrow')}"
    for package in packages():
        told = _told_by(package)
        if told is not None:
            yield f"{package}: {told}"


def _version(package: str) -> str:
    """As it was installed; nothing is imported."""
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{package} of unknown version" if importlib.util.find_spec(package) else f"no {package}"


def _told_by(package: str) -> str | None:
    try:
        tells = getattr(imported(package), "about", None)
        with authored(package, "its function about failed"):
            return str(tells()) if callable(tells) else None
    except DagkitError as broken:
        return spoken(broken.__cause__ or broken)
