"""Settings of the sessions that dagkit starts: its own, and which of them yield to the user's."""

import os
import shlex
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import javaproperties
import pyspark

from dagkit.backends.spark.master import Master

_SAYS_ERRORS = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

SESSION = {"spark.sql.adaptive.enabled": "false", "spark.ui.showConsoleProgress": "false"}
"""For every master: a window is one job, which leaves nothing to adapt, and dagkit reports progress itself."""

LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
"""For a local master: nothing outside this machine connects to it."""

_QUICK_JAVA = "-XX:TieredStopAtLevel=1"
"""For a local master: Java moves blobs and sees no record, so it compiles its code once, and quickly."""

_SOCKET_NAME = len("/.00000000-0000-0000-0000-000000000000.sock")
_LONGEST_SOCKET_PATH = 103
"""What every system lets the path of a Unix socket be."""


def settings_for(master: Master, users: Mapping[str, str], *, temporary: str = "", logs: bool = True) -> dict[str, str]:
    """The settings that dagkit adds for a master. What the user has set is not among them.

    `temporary` is the folder for the sockets of a local master; with `logs` Spark logs errors alone.
    """
    settings, java = dict(SESSION), []
    if logs:
        java.append(f"-Dlog4j2.configurationFile={_SAYS_ERRORS.as_uri()}")
    if master.is_local:
        settings |= LOCAL | _sockets_in(temporary or tempfile.gettempdir())
        java.append(_QUICK_JAVA)
    chosen = {name: value for name, value in settings.items() if name not in users}
    if java:  # of two options that contradict each other Java takes the later one
        chosen[_JAVA_OPTIONS] = " ".join([*java, *filter(None, [users.get(_JAVA_OPTIONS, "")])])
    return chosen


def _sockets_in(folder: str) -> dict[str, str]:
    """Java and the workers exchange data by Unix sockets, which are quicker than TCP, if the folder's path is short."""
    if len(os.fsencode(folder)) + _SOCKET_NAME > _LONGEST_SOCKET_PATH:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": folder}


def users_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What the user has set for Spark in spark-defaults.conf and in PYSPARK_SUBMIT_ARGS."""
    asked, file = _submitted(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    path = Path(file) if file else configuration_folder(environment) / "spark-defaults.conf"
    read = javaproperties.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {name: value for name, value in {**read, **asked}.items() if name.startswith("spark.")}


def has_own_logging(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the user has configured what Spark logs."""
    folder = configuration_folder(environment)
    return any((folder / f"log4j2.{ending}").is_file() for ending in ("properties", "xml", "json", "yaml"))


def configuration_folder(environment: Mapping[str, str]) -> Path:
    """The folder that Spark is configured in."""
    home = environment.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    return Path(environment.get("SPARK_CONF_DIR") or Path(home) / "conf")


def _submitted(arguments: str) -> tuple[dict[str, str], str]:
    """The settings among arguments of `spark-submit`, and the property file that they name."""
    settings, file = {}, ""
    words = [part for word in shlex.split(arguments) for part in _parts(word)]
    for option, value in pairwise(words):
        match option:
            case "--conf" | "-c":
                name, _, settings[name] = _setting(value)
            case "--driver-java-options":
                settings[_JAVA_OPTIONS] = value
            case "--properties-file":
                file = value
    return settings, file


def _setting(text: str) -> tuple[str, str, str]:
    name, equals, value = text.partition("=")
    return name.strip(), equals, value.strip()


def _parts(word: str) -> list[str]:
    """`--conf=a=b` as the two words that it stands for."""
    option, equals, value = word.partition("=")
    return [option, value] if equals and option.startswith("--") else [word]
