"""The Java contestant finds a Java that its engine runs on, and says what to install."""

from pathlib import Path

import pytest

from bench.ingesting.environments import Unavailable
from bench.ingesting.maven import APEX, Java, Project, java


def java_in(folder: Path, version: str) -> str:
    """A folder with a `java` that prints this version as Java does."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n", encoding="utf-8")
    command.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(("version", "major"), [("1.8.0_504", 8), ("11", 11), ("17.0.15", 17)])
def test_java_is_found_where_it_is_named(version, major, tmp_path, monkeypatch):
    monkeypatch.setenv("APEX_JAVA_HOME", java_in(tmp_path, version))
    assert java() == Java(str(tmp_path / "bin" / "java"), major, version)


def test_the_oldest_java_is_chosen(tmp_path, monkeypatch):
    monkeypatch.delenv("APEX_JAVA_HOME", raising=False)
    monkeypatch.setenv("JAVA_HOME", java_in(tmp_path / "new", "17.0.1"))
    monkeypatch.setenv("PATH", f"{java_in(tmp_path / 'old', '1.8.0_1')}/bin")
    assert java().command == str(tmp_path / "old" / "bin" / "java")


@pytest.mark.parametrize("version", ["1.7.0_80", "18.0.1", "25", "none"])
def test_a_java_on_which_the_engine_is_slow_or_fails_is_not_used(version, tmp_path, monkeypatch):
    monkeypatch.setenv("APEX_JAVA_HOME", java_in(tmp_path, version))
    with pytest.raises(Unavailable, match="needs Java 8 to 17: install one, for example openjdk-17-jdk"):
        APEX.make(print)


def test_maven_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("APEX_JAVA_HOME", java_in(tmp_path, "1.8.0_504"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="needs Maven and a Java compiler: install them"):
        APEX.make(print)


def test_a_project_is_compiled_again_when_a_source_changed(tmp_path, monkeypatch):
    home = Path(java_in(tmp_path / "java", "1.8.0_504"))
    calls = tmp_path / "calls"
    maven = home / "bin" / "mvn"
    maven.write_text(f'#!/bin/sh\nmkdir -p "$DAGKIT_BENCH_VENV/made"\necho "$*" >>{calls}\n', encoding="utf-8")
    maven.chmod(0o755)
    monkeypatch.setenv("APEX_JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(maven.parent), prepend=":")
    monkeypatch.setenv("DAGKIT_BENCH_VENV", str(tmp_path))
    source = tmp_path / "Ingest.java"
    project = Project("made", ("apex-engine",), tmp_path / "pom.xml")
    project.pom.write_text("<project/>", encoding="utf-8")
    for text in ("class Ingest {}", "class Ingest {}", "class Ingest { int changed; }"):
        source.write_text(text, encoding="utf-8")
        project.make(print)
    first, second = calls.read_text(encoding="utf-8").splitlines()
    assert first == second
    assert first.endswith("clean compile dependency:copy-dependencies")
