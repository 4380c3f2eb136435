"""`dagkit --version` prints what is installed, and whether byte scanning uses compiled C."""

import platform
import sys
from importlib.metadata import version

import pytest

import dagkit as installed
from dagkit_operators.native import compiled
from tests.cases import cases


@pytest.fixture
def install(write, folder, monkeypatch):
    """Installs a library of operators that is this text."""

    def install(source):
        write("library/__init__.py", source)
        write("library-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: library\nVersion: 1.0\n")
        write("library-1.0.dist-info/entry_points.txt", "[dagkit.operators]\nlibrary = library\n")
        monkeypatch.syspath_prepend(folder)

    yield install
    sys.modules.pop("library", None)


def test_the_version_comes_first_and_what_it_runs_on_behind_it(dagkit):
    first, second, *_ = dagkit("--version").out.splitlines()
    assert first == f"dagkit {installed.__version__}"
    runs_on = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in ("pyspark", "pyarrow"))]
    assert second == ", ".join(runs_on)


@pytest.mark.parametrize(
    ("found", "scanner"),
    [
        pytest.param(None, "numpy (this version has no compiled C)", id="nothing was compiled"),
        pytest.param(compiled.Compiled("libbytewise.so", len, len), "compiled C", id="all was compiled"),
        (compiled.Compiled("libbytewise.so", None, len), "compiled C, for lines numpy"),
    ],
)
def test_the_version_names_what_scans_bytes(dagkit, monkeypatch, found, scanner):
    monkeypatch.setattr(compiled, "compiled", lambda: found)
    assert dagkit("--version").out.splitlines()[2] == f"dagkit_operators: byte scanning: {scanner}"


@cases(
    "source, lines",
    ("returns text", "def about():\n    return 'of today'", ["of today"]),
    ("has no function", "length = 3", []),
    ("has another attribute", "about = 3", []),
    ("lacks a module", "import no_such_module", ["ModuleNotFoundError: No module named 'no_such_module'"]),
    ("fails", "def about():\n    raise ValueError('not today')", ["ValueError: not today"]),
)
def test_every_library_may_add_a_line_about_itself(dagkit, install, source, lines):
    install(source)
    assert dagkit("--version").out.splitlines()[3:] == [f"library: {line}" for line in lines]
