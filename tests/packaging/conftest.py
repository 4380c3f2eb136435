"""One build, and one installation of it, for all tests of packaging."""

import shutil
import sys
import venv

import pytest

from tests.packaging.building import ROOT, Place, build, lend, run


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("dist"))[0]


@pytest.fixture(scope="session")
def place(built, tmp_path_factory):
    """What dagkit depends on is lent by the environment of the tests, so that no network is needed."""
    folder = tmp_path_factory.mktemp("place")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    install = ["--python", str(python), "install", "--quiet", "--no-deps", "--no-index", str(built.wheel)]
    run([sys.executable, "-m", "pip", "--disable-pip-version-check", *install], folder)
    lend(folder / "venv")
    shutil.copytree(ROOT / "apps" / "line_filter", folder / "line_filter")
    return Place(python, folder)
