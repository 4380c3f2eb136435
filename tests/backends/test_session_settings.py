"""What dagkit sets for which master, and that the user's own settings win."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from dagkit.backends.spark.session.master import Master
from dagkit.backends.spark.session.session_settings import has_own_logging, settings_for, users_settings
from tests.backends.test_spark_cluster import SLOTS, ran
from tests.processes import run_program

EVERYWHERE = {
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
LOCAL = {
    **EVERYWHERE,
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.python.daemon.module": "dagkit.backends.spark.window.daemon",
    "spark.python.unix.domain.socket.dir": "/tmp",  # noqa: S108 - only a name here
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.enabled": "false",
}
CLUSTERS = ("local-cluster[2,1,1024]", "spark://master:7077", "yarn", "k8s://https://api:6443")


def without(settings: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name not in names}


def chosen(master: str, users: Mapping[str, str] | None = None, temporary: str = "/tmp") -> dict[str, str]:  # noqa: S108
    return settings_for(Master.of(master), users or {}, temporary=temporary, logs=False)


@pytest.mark.parametrize(
    ("master", "settings"),
    [*((local, LOCAL) for local in ("local", "local[2]", "local[*,3]")), *((each, EVERYWHERE) for each in CLUSTERS)],
)
def test_what_makes_a_local_spark_quick_and_private_is_set_for_local_masters_only(master, settings):
    assert chosen(master) == settings


@pytest.mark.parametrize("master", ["local[2]", *CLUSTERS])
def test_what_the_user_has_set_is_left_alone(master):
    names = [name for name in chosen(master) if name != "spark.driver.extraJavaOptions"]
    assert chosen(master, dict.fromkeys(names, "theirs")).keys() <= {"spark.driver.extraJavaOptions"}


def test_the_users_java_options_come_after_ours():
    both = chosen("local", {"spark.driver.extraJavaOptions": "-Dtheir=own -XX:TieredStopAtLevel=4"})
    assert both["spark.driver.extraJavaOptions"] == "-XX:TieredStopAtLevel=1 -Dtheir=own -XX:TieredStopAtLevel=4"


@pytest.mark.parametrize(("length", "sockets"), [(60, True), (61, False)])
def test_a_folder_whose_path_is_too_long_for_a_socket_gets_none(length, sockets):
    names = {name for name in chosen("local", temporary="/" + "t" * (length - 1)) if "unix" in name}
    assert bool(names) is sockets


@pytest.mark.parametrize("logs", [True, False])
def test_errors_alone_are_logged_unless_the_user_has_a_configuration(logs):
    java = settings_for(Master.of("yarn"), {}, logs=logs).get("spark.driver.extraJavaOptions", "")
    assert ("log4j2.configurationFile" in java) is logs


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "spark-defaults.conf").write_text(
        "# ours\nspark.ui.enabled true\nspark.master=yarn\nspark.a: file\nnot.of.spark x\n", encoding="utf-8"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "a"),
    [
        ("", "file"),
        ("pyspark-shell", "file"),
        ("--conf spark.a=argument pyspark-shell", "argument"),
        ("-c spark.a=argument --conf spark.b=x pyspark-shell", "argument"),
        ("--conf=spark.a=argument=too pyspark-shell", "argument=too"),
        ("--conf 'spark.a=two words' pyspark-shell", "two words"),
        ("--properties-file {}/other.conf pyspark-shell", "other"),
        ("--conf", "file"),
    ],
)
def test_the_users_settings_are_read_from_where_spark_reads_them(folder, arguments, a):
    (folder / "other.conf").write_text("spark.a other\n", encoding="utf-8")
    users = users_settings({"SPARK_CONF_DIR": str(folder), "PYSPARK_SUBMIT_ARGS": arguments.format(folder)})
    assert users["spark.a"] == a
    assert "not.of.spark" not in users
    assert users.get("spark.ui.enabled") == (None if "other" in arguments else "true")


def test_java_options_are_asked_for_in_two_ways():
    users = users_settings({"PYSPARK_SUBMIT_ARGS": "--driver-java-options '-Da=b -Dc=d' pyspark-shell"})
    assert users["spark.driver.extraJavaOptions"] == "-Da=b -Dc=d"


def test_the_folder_of_a_spark_that_is_installed_is_asked(folder, tmp_path):
    (tmp_path / "conf").mkdir()
    (folder / "spark-defaults.conf").rename(tmp_path / "conf" / "spark-defaults.conf")
    assert users_settings({"SPARK_HOME": str(tmp_path)})["spark.a"] == "file"


def test_a_log_configuration_of_the_users_own_is_seen(tmp_path):
    environment = {"SPARK_CONF_DIR": str(tmp_path)}
    (tmp_path / "log4j2.properties.template").touch()
    assert not has_own_logging(environment)
    (tmp_path / "log4j2.xml").touch()
    assert has_own_logging(environment)


SHOWS = """
import json
from dagkit.backends.spark import session_at
names = ["spark.master", "spark.sql.adaptive.enabled", "spark.theirs", *(f"spark.{name}" for name in (
    "ui.enabled", "driver.bindAddress", "python.unix.domain.socket.enabled"))]
mine = {"spark.theirs": "given", "spark.ui.showConsoleProgress": "true"}
for master, settings in (("local[1]", {}), ("local-cluster[1,1,1024]", {}), ("local[1]", mine)):
    session = session_at(master, settings)
    print(json.dumps([session.conf.get(name, None) for name in names]))
    session.stop()
"""


@pytest.mark.trial
@pytest.mark.spark
@pytest.mark.parametrize("way", ["python", "spark-submit"])
def test_a_session_has_the_users_settings_and_a_cluster_none_of_the_local_ones(folder, way):
    script = folder / "shows.py"
    script.write_text(SHOWS, encoding="utf-8")
    defaults = "spark.sql.adaptive.enabled true\nspark.theirs kept\n"
    (folder / "spark-defaults.conf").write_text(defaults, encoding="utf-8")
    python = {"python": sys.executable, "spark-submit": str(Path(pyspark.__file__).parent / "bin" / "spark-submit")}
    environment = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder),
    }
    done = run_program([python[way], str(script)], env={**os.environ, **environment}, seconds=120)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert told == [
        ["local[1]", "true", "kept", "false", "127.0.0.1", "true"],
        ["local-cluster[1,1,1024]", "true", "kept", None, None, None],
        ["local[1]", "true", "given", "false", "127.0.0.1", "true"],
    ]


@pytest.mark.trial
@pytest.mark.spark
def test_executors_whose_folders_have_long_paths_run_python(tmp_path):
    """As containers of YARN do, whose paths are longer than that of a Unix socket may be."""
    deep = tmp_path / ("a" * 100)
    deep.mkdir()
    arguments = f"--conf spark.executor.extraJavaOptions=-Djava.io.tmpdir={deep} pyspark-shell"
    told = ran("local-cluster[1,1,1024]", tmp_path / "never", "a", "b", PYSPARK_SUBMIT_ARGS=arguments)
    assert (told["counts"], told["slots"]) == ({"A!": 2, "B!": 2}, SLOTS)
