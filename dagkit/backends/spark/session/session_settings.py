"""Settings of the sessions that dagkit starts. Those of the user take precedence."""

import os
import shlex
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import javaproperties
import pyspark

from dagkit.backends.spark.session.master import Master

_SAYS_ERRORS = Path(__file__).with_name("log4j2.properties")
JAVA_OPTIONS = "spark.driver.extraJavaOptions"

# What makes a local Spark quick breaks a cluster: the folders of YARN's containers have longer paths than a socket may
# have. And a setting of the program is stronger than `spark-defaults.conf`, so a setting that the user has made is left
# out here, instead of being set before the user's.
SESSION = {
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""For every master: a worker that crashes reports where, adaptive execution cannot improve windows of one job, and
dagkit reports progress itself."""

LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
"""For a local master: it accepts no connection from other machines."""

DAEMON = {"spark.python.daemon.module": "dagkit.backends.spark.window.daemon"}
"""For a local master: fork workers from a process that has imported what they need."""

# Compiling each method a second time took 0.1 to 0.3 s of the cores that the workers read with: a launch of a GiB took
# 0.66 s with it and 0.57 without, and exchanges were as fast. Spark's own queries in such a session take 2.3 times as
# long; users who need them pass a session of their own to `launch`. Other garbage collectors changed nothing.
_QUICK_JAVA = "-XX:TieredStopAtLevel=1"
"""For a local master: use only the quick compiler, because Java moves blobs and processes no records."""

_SOCKET_NAME = len("/.00000000-0000-0000-0000-000000000000.sock")
_LONGEST_SOCKET_PATH = 103
"""The longest path of a Unix socket, in bytes, that every system accepts."""


def settings_for(
    master: Master, users: Mapping[str, str], *, logs: bool = True, own_python: bool = True
) -> dict[str, str]:
    """The settings that dagkit adds for a master, without those that the user has set.

    With `logs`, Spark logs only errors. Unless `own_python`, the workers of a local master run in another Python, which
    may lack dagkit.
    """
    settings, java = dict(SESSION), []
    if logs:
        java.append(f"-Dlog4j2.configurationFile={_SAYS_ERRORS.as_uri()}")
    if master.is_local:
        settings |= LOCAL | (DAEMON if own_python else {}) | _sockets_in(tempfile.gettempdir())
        java.append(_QUICK_JAVA)
    chosen = {name: value for name, value in settings.items() if name not in users}
    if java:  # if two options contradict each other, the later one, that of the user, is effective
        chosen[JAVA_OPTIONS] = " ".join([*java, *filter(None, [users.get(JAVA_OPTIONS, "")])])
    return chosen


def _sockets_in(folder: str) -> dict[str, str]:
    """Settings for Unix sockets between Java and workers, which are faster than TCP; empty if the path is too long."""
    if len(os.fsencode(folder)) + _SOCKET_NAME > _LONGEST_SOCKET_PATH:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": folder}


def users_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The user's settings for Spark, from spark-defaults.conf and PYSPARK_SUBMIT_ARGS."""
    asked, file = _submitted(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    path = Path(file) if file else configuration_folder(environment) / "spark-defaults.conf"
    read = javaproperties.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {name: value for name, value in {**read, **asked}.items() if name.startswith("spark.")}


def has_own_logging(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the user has configured Spark's logging."""
    folder = configuration_folder(environment)
    return any((folder / f"log4j2.{ending}").is_file() for ending in ("properties", "xml", "json", "yaml"))


def configuration_folder(environment: Mapping[str, str]) -> Path:
    """The folder of Spark's configuration files."""
    return Path(environment.get("SPARK_CONF_DIR") or spark_home(environment) / "conf")


def spark_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the Spark that PySpark starts."""
    return Path(environment.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def _submitted(arguments: str) -> tuple[dict[str, str], str]:
    """The settings in arguments of `spark-submit`, and the path of the property file in them."""
    settings, file = {}, ""
    words = [part for word in shlex.split(arguments) for part in _parts(word)]
    for option, value in pairwise(words):
        match option:
            case "--conf" | "-c":
                name, _, setting = value.partition("=")
                settings[name.strip()] = setting.strip()
            case "--driver-java-options":
                settings[JAVA_OPTIONS] = value
            case "--properties-file":
                file = value
    return settings, file


def _parts(word: str) -> list[str]:
    """`--conf=a=b` as two words; any other word as it is."""
    option, equals, value = word.partition("=")
    return [option, value] if equals and option.startswith("--") else [word]
