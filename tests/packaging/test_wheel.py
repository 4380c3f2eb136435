"""What is built holds what users need and nothing else, and works away from the checkout."""

import os
import re
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from hatch_build import MISSING, SOURCES, can_compile, library_of, platform_tag
from tests.docs.fences import fences_in
from tests.packaging.building import ROOT, Place, build, lend, run, unpacked
from tests.processes import run_program

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGES = {"dagkit": ROOT / "dagkit", "dagkit_operators": ROOT / "operators" / "dagkit_operators"}

SHOWN = {
    language: [fence for fence in fences_in(ROOT / "docs" / "installing.md") if fence.language == language]
    for language in ("sh", "python")
}
"""What the page on installing shows."""

PAGE = (".html", ".css", ".js", ".svg", ".woff2")
"""Endings of what the console serves."""

COMPILED = {f"dagkit_operators/native/{library_of(source)}" for source in SOURCES}
"""What a wheel holds besides where there is a compiler."""
LIBRARIES = {PACKAGES["dagkit_operators"].parent / name for name in COMPILED}
"""The same in this very tree, where dagkit is installed editable."""

pytestmark = pytest.mark.slow
compiling = pytest.mark.skipif(not can_compile(), reason=MISSING)


def _sources(package):
    """The files of a package as the wheel is to hold them."""
    root = PACKAGES[package]
    return {
        f"{package}/{path.relative_to(root).as_posix()}"
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path not in LIBRARIES
    }


EXAMPLES = {
    f"dagkit/examples/{path.relative_to(ROOT / 'apps').as_posix()}"
    for path in (ROOT / "apps").glob("*/*")
    if path.suffix in (".py", ".xml") and not path.name.startswith("test_")
}
"""The applications that the wheel brings."""


def test_the_wheel_holds_every_file_of_its_packages_and_every_example_and_nothing_else(built):
    tops = {name.partition("/")[0] for name in built.in_wheel}
    assert tops == {*PACKAGES, "dagkit_pytest.py", f"dagkit-{PROJECT['version']}.dist-info"}
    assert built.in_wheel >= EXAMPLES >= {"dagkit/examples/line_filter/app.py"}
    for package in PACKAGES:
        held = {name for name in built.in_wheel if name.startswith(f"{package}/")}
        assert held - COMPILED - EXAMPLES == _sources(package)
        assert f"{package}/py.typed" in held


def test_what_the_packages_hold_is_code_types_how_spark_speaks_and_what_a_page_is_made_of(built):
    held = [name for name in built.in_wheel if name.partition("/")[0] in PACKAGES]
    other = {name for name in held if Path(name).suffix not in (".py", ".pyi", ".typed", *PAGE)}
    spoken = {"dagkit/backends/spark/session/log4j2.properties", "dagkit/console/static/uPlot.LICENSE"}
    assert other - COMPILED - EXAMPLES == {*spoken, *(f"dagkit_operators/native/{source.name}" for source in SOURCES)}


@compiling
def test_a_wheel_with_compiled_code_is_for_the_platform_that_it_was_compiled_on(built):
    assert built.in_wheel >= COMPILED
    assert built.wheel.name == f"dagkit-{PROJECT['version']}-py3-none-{platform_tag()}.whl"
    assert f"Root-Is-Purelib: false\nTag: py3-none-{platform_tag()}\n" in built.read("WHEEL").replace("\r", "")


@pytest.mark.gate(1)
@pytest.mark.parametrize(
    "compiler",
    ["no-such-compiler", "false", "true", "gcc -c", "gcc '-O2"],
    ids=["there is none", "it fails", "it makes nothing", "it makes no library", "it is wrong"],
)
def test_without_a_compiler_the_wheel_is_for_every_machine(built, tmp_path, compiler):
    tree = unpacked(built.sdist, tmp_path / "unpacked")
    for library in COMPILED:
        (tree / "operators" / library).write_text("of an earlier build")
    plain, told = build(tree, tmp_path / "plain", CC=compiler)
    assert all(f"{source.name} is not compiled, numpy will do" in told for source in SOURCES)
    assert plain.wheel.name == f"dagkit-{PROJECT['version']}-py3-none-any.whl"
    assert plain.in_wheel == built.in_wheel - COMPILED
    shutil.unpack_archive(plain.wheel, installed := tmp_path / "installed", "zip")
    told = run([sys.executable, "-m", "dagkit.cli", "--version"], tmp_path, PYTHONPATH=str(installed))
    assert "dagkit_operators: byte scanning: numpy" in told


@compiling
def test_what_was_compiled_is_used_where_the_wheel_is_installed(place):
    names = "compiled, json_members"
    program = f"from dagkit_operators.native.compiled import {names}; print(json_members(), compiled().path)"
    printed = place.run("python", "-c", program)
    assert (f" {place.folder}" in printed, "None" in printed) == (True, False)
    assert "dagkit_operators: byte scanning: compiled C" in place.run("dagkit", "--version")


@compiling
def test_a_wheel_with_compiled_code_runs_on_older_systems(built):
    """What it needs of the C library is in every system of the last ten years, so that no code must be bundled."""
    said = run([sys.executable, "-m", "auditwheel", "show", str(built.wheel)], ROOT)
    assert "manylinux_2_17" in said


def test_the_wheel_brings_its_command_its_library_and_its_license_and_needs_what_the_project_says(built):
    entries = built.read("entry_points.txt")
    for entry in (
        "[console_scripts]\ndagkit = dagkit.cli:main",
        "[dagkit.operators]\ndagkit_operators = dagkit_operators",
        "[pytest11]\ndagkit = dagkit_pytest",
    ):
        assert entry in entries
    assert "Apache License" in built.read("licenses/LICENSE")
    needed = re.findall(r"^Requires-Dist: (.*)$", built.read("METADATA"), re.MULTILINE)
    always = [need for need in needed if "extra ==" not in need]
    assert sorted(map(_name, always)) == sorted(map(_name, PROJECT["dependencies"]))


def _name(requirement):
    return re.split(r"[<>=!~;]", requirement, maxsplit=1)[0].strip()


def test_the_sources_travel_with_applications_tests_and_documents_and_without_scratch(built):
    wanted = {"apps/line_filter/app.py", "apps/line_filter/properties.xml", "docs/errors.md", "README.md", "Makefile"}
    assert wanted | {"LICENSE", "NOTICE", "pyproject.toml", "tests/packaging/test_wheel.py"} <= built.in_sdist
    scratch = {".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", "dist"}
    assert {name for name in built.in_sdist | built.in_wheel if scratch & set(name.split("/"))} == set()
    assert {name for name in built.in_sdist if name.endswith(".so")} == set()


def test_the_sources_build_the_same_wheel(built, tmp_path):
    tree = unpacked(built.sdist, tmp_path / "unpacked")
    again, _ = build(tree, tmp_path / "again")
    assert again.in_wheel == built.in_wheel


def test_an_installed_dagkit_is_the_one_from_the_wheel_and_works_far_from_the_checkout(place):
    program = "import dagkit, dagkit_operators; print(dagkit.__file__, dagkit_operators.__file__)"
    assert place.run("python", "-c", program).count(str(place.folder)) == 2
    assert place.run("dagkit", "--version").splitlines()[0] == f"dagkit {PROJECT['version']}"
    assert place.run("dagkit", "validate", "line_filter") == "LineFilter is valid: 4 operators, 3 streams, 2 stages\n"
    assert "LineReader" in place.run("dagkit", "describe")


@dataclass(frozen=True, slots=True)
class Shell:
    """Where a user types what `docs/installing.md` shows: offline, so that nothing comes but what was built."""

    tree: Path
    """What was checked out."""
    home: Path

    def type_in(self, fence, folder, *more):
        """What the commands print, the first that fails being the last."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DAGKIT", "PIP"))}
        offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        own = {"PIP_NO_BUILD_ISOLATION": "0", "HOME": str(self.home)}  # by pip's logic, 0 says that there is none
        path = os.pathsep.join(map(str, (*more, Path(sys.executable).parent, os.environ["PATH"])))
        answer = run_program(
            ["/bin/sh", "-e", "-c", fence.text],
            cwd=folder,
            env={**clean, **offline, **own, "PATH": path},
            check=False,
            seconds=600,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout


@pytest.fixture(scope="module")
def shell(built, tmp_path_factory):
    """Where the first commands of the page were typed in."""
    shell = Shell(unpacked(built.sdist, tmp_path_factory.mktemp("unpacked")), tmp_path_factory.mktemp("home"))
    shell.type_in(SHOWN["sh"][0], shell.tree)
    lend(shell.home / "streams")
    return shell


@pytest.mark.trial
def test_what_the_page_says_builds_and_installs_it(built, shell):
    assert [wheel.name for wheel in (shell.tree / "dist").iterdir()] == [built.wheel.name]
    installed = Place(shell.home / "streams" / "bin" / "python", shell.home)
    assert installed.run("dagkit", "--version").startswith(f"dagkit {PROJECT['version']}\n")
    assert str(shell.home) in installed.run("python", "-c", "import dagkit; print(dagkit.__file__)")


@pytest.mark.trial
@pytest.mark.spark
def test_the_notebook_of_the_page_runs_on_its_session_and_keeps_it(shell, tmp_path):
    (notebook,) = SHOWN["python"]
    (tmp_path / notebook.role).write_text(notebook.text)
    installed = Place(shell.home / "streams" / "bin" / "python", tmp_path)
    assert installed.run("python", notebook.role) == "2 3\n"
    assert (tmp_path / "loud" / "part-00000-00000").read_text() == "it!\nis!\nhere!\n"


@pytest.mark.trial
def test_types_reach_users_who_install_it(place):
    """mypy sees a wire that does not fit in an application that only has the wheel."""
    wrong = (
        "from dagkit import Dag\n"
        "from dagkit_operators import FileSplitterInput, RecordWriter\n"
        "dag, splitter, writer = Dag(), FileSplitterInput(), RecordWriter()\n"
        'dag.add_stream("blocks", splitter.blocks_metadata_output, writer.input)\n'
    )
    (place.folder / "wrong.py").write_text(wrong, encoding="utf-8")
    options = ["--python-executable", str(place.python), "--cache-dir", os.devnull]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MYPY"))}
    command = [sys.executable, "-m", "mypy", *options, "wrong.py"]
    told = run_program(command, cwd=place.folder, env=clean, check=False, seconds=600)
    assert "wrong.py:4: error" in told.stdout, told.stdout + told.stderr
    assert "[misc]" in told.stdout or "[arg-type]" in told.stdout
