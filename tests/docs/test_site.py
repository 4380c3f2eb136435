"""The documents are a site: every page is in it, no link leads nowhere, and the reference comes from the code."""

import importlib.util
import sys

import pytest

from dagkit.cli.group import COMMANDS
from tests.docs.fences import ROOT
from tests.processes import run_program

pytest.importorskip("myst_parser")


@pytest.mark.trial
@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path):
    command = [sys.executable, str(ROOT / "docs" / "site" / "build.py"), str(tmp_path / "site")]
    built = run_program(command, check=False, seconds=50)
    assert built.returncode == 0, built.stdout + built.stderr
    pages = {path.relative_to(tmp_path / "site").with_suffix("").as_posix() for path in tmp_path.rglob("*.html")}
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= pages
    commands = (tmp_path / "site" / "reference" / "commands.html").read_text()
    assert all(f"dagkit {known.name}" in commands for known in COMMANDS)
    assert "min_readers" in (tmp_path / "site" / "reference" / "operators.html").read_text()
    assert "PARTITION_PARALLEL" in (tmp_path / "site" / "reference" / "attributes.html").read_text()


def test_every_page_has_a_place_in_the_table_of_contents():
    spec = importlib.util.spec_from_file_location("build", ROOT / "docs" / "site" / "build.py")
    assert spec is not None and spec.loader is not None  # noqa: PT018
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    listed = [page for pages in build.PARTS.values() for page in pages]
    assert sorted(page for page in listed if "/" not in page) == sorted(p.stem for p in (ROOT / "docs").glob("*.md"))
