"""The environment of a contestant in Java: Maven downloads its packages and compiles its classes at first use."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.ingesting.environments import Environment, Unavailable, cache_folder

OLDEST, NEWEST = 8, 17
"""Java after 17 has no biased locking, without which Apex, which locks for each byte, has half its speed."""
_VERSION = re.compile(r'version "((?:1\.)?(\d+)[^"]*)"')


@dataclass(frozen=True, slots=True)
class Java:
    """A command that starts Java."""

    command: str
    major: int
    version: str


@dataclass(frozen=True, slots=True)
class Project(Environment):
    """A project of Maven; the requirements are the packages whose versions are reported."""

    pom: Path = Path()

    @property
    def folder(self) -> Path:
        """The folder of its classes and jars."""
        return cache_folder() / self.name

    @property
    def python(self) -> Path:
        """dagkit's own: its process starts Java."""
        return Path(sys.executable)

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of its jars and of Java."""
        jars = {package: self.folder.glob(f"dependency/{package}-*.jar") for package in self.requirements}
        found = {package: jar.stem.removeprefix(f"{package}-") for package, some in jars.items() for jar in some}
        return {**found, f"Java for {self.name}": java().version}

    @property
    def recipe(self) -> str:
        """The project and its sources."""
        return "\n".join(path.read_text("utf-8") for path in [self.pom, *sorted(self.pom.parent.glob("*.java"))])

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The command that compiles it and copies its jars."""
        options = ("--quiet", "--batch-mode", "--file", str(self.pom), f"-Dfolder={self.folder}")
        return (("mvn", *options, "clean", "compile", "dependency:copy-dependencies"),)

    @property
    def classpath(self) -> str:
        """Its classes and jars, once they are made."""
        return os.pathsep.join([str(self.folder / "classes"), str(self.folder / "dependency" / "*")])

    def make(self, say: Callable[[str], None]) -> None:
        """Compile it, unless this was done. Raise `Unavailable` if there is no Java for it, or no Maven."""
        java()
        if shutil.which("mvn") is None:
            raise Unavailable(
                f"{self.name} needs Maven and a Java compiler: install them, for example maven, default-jdk"
            )
        Environment.make(self, say)


def java() -> Java:
    """The oldest Java that Apex runs on: it was made for 8."""
    some = [found for found in map(_java_at, _commands()) if found and OLDEST <= found.major <= NEWEST]
    if not some:
        raise Unavailable(
            f"Apache Apex needs Java {OLDEST} to {NEWEST}: install one, for example openjdk-17-jdk, "
            "and set APEX_JAVA_HOME to its folder unless it is found in JAVA_HOME, PATH or /usr/lib/jvm"
        )
    return min(some, key=lambda found: found.major)


def _commands() -> Iterator[str]:
    """The `java` of APEX_JAVA_HOME if this is set, otherwise of all places where Java usually is."""
    if named := os.environ.get("APEX_JAVA_HOME"):
        yield str(Path(named) / "bin" / "java")
        return
    if home := os.environ.get("JAVA_HOME"):
        yield str(Path(home) / "bin" / "java")
    if on_path := shutil.which("java"):
        yield on_path
    yield from map(str, sorted(Path("/usr/lib/jvm").glob("*/bin/java")))


def _java_at(command: str) -> Java | None:
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - Java
    except OSError:
        return None
    found = _VERSION.search(done.stderr)
    return Java(command, int(found[2]), found[1]) if found else None


APEX = Project("apex", ("apex-engine", "malhar-library"), Path(__file__).parents[1] / "apex" / "pom.xml")
