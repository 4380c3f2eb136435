"""Masters: their forms are checked before Spark starts, and so is whether their hosts answer."""

import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread

import pyspark
import pytest

from dagkit.backends.spark.session import master
from dagkit.backends.spark.session.master import Kind, Master, reach
from dagkit.backends.spark.session.session_settings import has_own_logging, settings_for, users_settings
from dagkit.backends.spark.window.cores import CoresOf, cores_of, most_cores
from dagkit.engine.worker.protocol import Cores
from dagkit.errors import RunFailure
from tests.backends.test_preflight import SLOTS, ran
from tests.cases import cases
from tests.patience import join
from tests.processes import run_program


@pytest.mark.parametrize(
    ("kind", "urls", "hosts"),
    [
        (Kind.LOCAL, ["local", "local[4]", "local[*]", "local[2,3]", "local[*, 3]"], ()),
        (Kind.CLUSTER_HERE, ["local-cluster[2,1,1024]"], ()),
        (Kind.YARN, ["yarn"], ()),
        (Kind.STANDALONE, ["spark://master:7077"], (("master", 7077),)),
        (Kind.STANDALONE, ["spark://one:7077,two:7078"], (("one", 7077), ("two", 7078))),
        (Kind.STANDALONE, ["spark://[::1]:7077"], (("::1", 7077),)),
        (Kind.KUBERNETES, ["k8s://https://api:6443"], (("api", 6443),)),
        (Kind.KUBERNETES, ["k8s://api"], (("api", 443),)),
        (Kind.KUBERNETES, ["k8s://http://api"], (("api", 80),)),
        (Kind.CONNECT, ["sc://server"], (("server", 15002),)),
        (Kind.CONNECT, ["sc://server:443/;use_ssl=true;token=a"], (("server", 443),)),
    ],
)
def test_a_master_is_known_by_its_url(kind, urls, hosts):
    assert [Master.of(url) for url in urls] == [Master(url, kind, hosts) for url in urls]


AS = "write spark://HOST:PORT, as in"
FORMS = (
    "local, local[N], local[*], local[N,FAILURES], local-cluster[WORKERS,CORES,MEMORY], spark://HOST:PORT, yarn, "
    "k8s://HOST:PORT, sc://HOST:PORT"
)


@pytest.mark.parametrize(
    ("help_line", "urls"),
    [
        ("did you mean spark://HOST:PORT?", ["sprak://master:7077", "spark:master:7077"]),
        ("did you mean yarn?", ["yran"]),
        ("did you mean local?", ["Local", "lokal[2]"]),
        ("did you mean local[4]?", ["local4"]),
        ("did you mean spark://localhost:7077?", ["localhost:7077"]),
        ("write local[N] with at least one core, or local[*] for all", ["local[0]", "local[two]"]),
        ("did you mean local-cluster[WORKERS,CORES,MEMORY]?", ["local-cluster[2,1]"]),
        ("did you mean k8s://HOST:PORT?", ["k8://api"]),
        (f"{AS} spark://master:7077", ["spark://master", "spark://:7077", "spark://master:port"]),
        ("write sc://HOST:PORT", ["sc://"]),
        (f"a master is one of {FORMS}", ["http://master:8080", "mesos://master:5050"]),
    ],
)
def test_what_is_no_master_is_refused_with_what_was_meant(help_line, urls):
    for url in urls:
        with pytest.raises(RunFailure, match=r"\[master-invalid\]") as raised:
            Master.of(url)
        assert str(raised.value) == f"{url!r} is not a Spark master [master-invalid]\n  help: {help_line}"
        assert raised.value.exit_code == 2


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def port():
    """A port that is taken, and refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


def refusal(url: str) -> str:
    with pytest.raises(RunFailure, match=r"\[spark-unavailable\]") as raised:
        reach(Master.of(url))
    assert raised.value.exit_code == 9
    assert raised.value.help
    return raised.value.problem


def test_a_host_that_listens_is_reached_and_one_of_several_masters_is_enough(server, port):
    place = f"127.0.0.1:{server.getsockname()[1]}"
    for url in (f"sc://{place}", f"spark://127.0.0.1:{port},{place}", "local[2]"):
        reach(Master.of(url))


@pytest.mark.parametrize("form", ["spark://127.0.0.1:{}", "k8s://https://127.0.0.1:{}", "sc://127.0.0.1:{}"])
def test_a_port_at_which_nothing_listens_is_reported(form, port):
    assert refusal(form.format(port)) == f"no Spark at {form.format(port)}: nothing listens at 127.0.0.1:{port}"


@pytest.mark.parametrize("host", ["no.such.host.invalid", f"{'a' * 64}.invalid", "a..invalid"])
def test_a_host_that_does_not_exist_is_reported(host):
    assert refusal(f"spark://{host}:7077") == f"no Spark at spark://{host}:7077: there is no host {host!r}"


def test_every_master_that_does_not_answer_is_named(port):
    told = refusal(f"spark://no.such.host.invalid:7077,127.0.0.1:{port}")
    assert told.endswith(f": there is no host 'no.such.host.invalid'; nothing listens at 127.0.0.1:{port}")


def test_a_host_that_never_answers_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(master, "patient", lambda _: 0.1)
    with socket.socket() as full, socket.socket() as first:  # who connects after the first waits for ever
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        place = full.getsockname()
        first.connect(place)
        assert refusal(f"sc://127.0.0.1:{place[1]}").endswith(f"127.0.0.1:{place[1]} did not answer within 0.1 s")


def test_hosts_that_fail_one_after_the_other_have_one_time_together(monkeypatch):
    ended = Event()

    def fail(_: str, port: int, seconds: float, **__: bool) -> None:
        ended.wait(port * seconds / 2)
        raise ConnectionRefusedError

    monkeypatch.setattr(master, "patient", lambda _: 0.1)
    monkeypatch.setattr(master, "_open_and_close", fail)
    hosts = ",".join(f"127.0.0.1:{port}" for port in range(1, 51))
    assert refusal(f"spark://{hosts}").endswith("127.0.0.1:50 did not answer within 0.1 s")
    ended.set()


def test_a_tunnel_whose_far_end_is_gone_is_no_master(server):
    def accept() -> None:
        server.accept()[0].close()

    tunnel = Thread(target=accept)
    tunnel.start()
    place = f"127.0.0.1:{server.getsockname()[1]}"
    assert refusal(f"spark://{place}") == f"no Spark at spark://{place}: {place} closes every connection"
    join(tunnel, seconds=120)


def test_a_host_behind_a_proxy_is_left_to_the_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    reach(Master.of("sc://no.such.host.invalid"))


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


def chosen(master: str, users: Mapping[str, str] | None = None) -> dict[str, str]:
    return settings_for(Master.of(master), users or {}, logs=False)


@pytest.mark.parametrize(
    ("master", "settings"),
    [*((local, LOCAL) for local in ("local", "local[2]", "local[*,3]")), *((each, EVERYWHERE) for each in CLUSTERS)],
)
def test_what_makes_a_local_spark_quick_and_private_is_set_for_local_masters_only(master, settings, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", settings.get("spark.python.unix.domain.socket.dir"))
    assert chosen(master) == settings


@pytest.mark.parametrize("master", ["local[2]", *CLUSTERS])
def test_what_the_user_has_set_is_left_alone(master):
    names = [name for name in chosen(master) if name != "spark.driver.extraJavaOptions"]
    assert chosen(master, dict.fromkeys(names, "theirs")).keys() <= {"spark.driver.extraJavaOptions"}


@pytest.mark.parametrize(("length", "sockets"), [(60, True), (61, False)])
def test_a_folder_whose_path_is_too_long_for_a_socket_gets_none(length, sockets, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/" + "t" * (length - 1))
    names = {name for name in chosen("local") if "unix" in name}
    assert bool(names) is sockets


@pytest.mark.parametrize("logs", [True, False])
def test_errors_alone_are_logged_unless_the_user_has_a_configuration(logs):
    java = settings_for(Master.of("yarn"), {}, logs=logs).get("spark.driver.extraJavaOptions", "")
    assert ("log4j2.configurationFile" in java) is logs


@pytest.fixture
def conf_folder(tmp_path):
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
def test_the_users_settings_are_read_from_where_spark_reads_them(conf_folder, arguments, a):
    (conf_folder / "other.conf").write_text("spark.a other\n", encoding="utf-8")
    users = users_settings({"SPARK_CONF_DIR": str(conf_folder), "PYSPARK_SUBMIT_ARGS": arguments.format(conf_folder)})
    assert users["spark.a"] == a
    assert "not.of.spark" not in users
    assert users.get("spark.ui.enabled") == (None if "other" in arguments else "true")


def test_the_users_java_options_come_after_ours_and_are_asked_for_in_two_ways():
    both = chosen("local", {"spark.driver.extraJavaOptions": "-Dtheir=own -XX:TieredStopAtLevel=4"})
    assert both["spark.driver.extraJavaOptions"] == "-XX:TieredStopAtLevel=1 -Dtheir=own -XX:TieredStopAtLevel=4"
    users = users_settings({"PYSPARK_SUBMIT_ARGS": "--driver-java-options '-Da=b -Dc=d' pyspark-shell"})
    assert users["spark.driver.extraJavaOptions"] == "-Da=b -Dc=d"


def test_the_folder_of_a_spark_that_is_installed_is_asked_also_for_a_log_configuration(conf_folder, tmp_path):
    (tmp_path / "conf").mkdir()
    (conf_folder / "spark-defaults.conf").rename(tmp_path / "conf" / "spark-defaults.conf")
    assert users_settings({"SPARK_HOME": str(tmp_path)})["spark.a"] == "file"
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
def test_a_session_has_the_users_settings_and_a_cluster_none_of_the_local_ones(conf_folder, way):
    script = conf_folder / "shows.py"
    script.write_text(SHOWS, encoding="utf-8")
    defaults = "spark.sql.adaptive.enabled true\nspark.theirs kept\n"
    (conf_folder / "spark-defaults.conf").write_text(defaults, encoding="utf-8")
    python = {"python": sys.executable, "spark-submit": str(Path(pyspark.__file__).parent / "bin" / "spark-submit")}
    environment = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(conf_folder),
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


DYNAMIC = {"dynamicAllocation_enabled": "true", "executor_cores": "4"}
MOST = "dynamicAllocation_maxExecutors"
HERE = os.cpu_count() or 1


def settings_of(**values: str) -> Callable[[str], str]:
    return lambda name: {f"spark.{key.replace('_', '.')}": value for key, value in values.items()}.get(name, "")


@cases(
    "settings, most",
    ("nothing is set", {}, None),
    ("so many executors", {"executor_instances": "3", "executor_cores": "4"}, 12),
    ("standalone, with a limit", {"cores_max": "7", "executor_cores": "4"}, 4),
    ("as many as may be allocated", {**DYNAMIC, MOST: "50"}, 200),
    ("allocated without a limit", {"dynamicAllocation_enabled": "true"}, None),
    ("a task has its cores on one executor", {"executor_instances": "3", "executor_cores": "5", "task_cpus": "2"}, 6),
    ("on each of those that a limit allows, too", {"cores_max": "10", "executor_cores": "5", "task_cpus": "2"}, 4),
    ("a limit for tasks of several cores", {"cores_max": "7", "task_cpus": "2"}, 3),
    ("a limit of what is not allocated", {MOST: "50"}, None),
)
def test_what_a_cluster_can_grow_to_is_in_its_settings(settings, most):
    assert most_cores(settings_of(**settings)) == most


REQUESTED = {"default_parallelism": "50"}
FIXED = {"master": "yarn", "executor_instances": "3", "executor_cores": "4"}
ALLOCATED = {"master": "yarn", **DYNAMIC}


@cases(
    "settings, counted, cores",
    ("a request makes no cores", {"master": "local[2]", **REQUESTED}, None, Cores(2, 2)),
    ("where tasks may fail, too", {"master": "local[2, 4]", **REQUESTED}, None, Cores(2, 2)),
    ("one thread", {"master": "local", **REQUESTED}, None, Cores(1, 1)),
    ("all threads there are", {"master": "local[*]"}, 8, Cores(8, 8)),
    ("all threads, though more were requested", {"master": "local[*]", **REQUESTED}, None, Cores(HERE, HERE)),
    ("two cores for a task", {"master": "local[4]", "task_cpus": "2"}, 4, Cores(2, 2)),
    ("no executors", {**FIXED, "master": "local[2]"}, 2, Cores(2, 2)),
    ("executors that are still to come", FIXED, 8, Cores(8, 12)),
    ("what the settings say, and no request", {**FIXED, **REQUESTED}, None, Cores(12, 12)),
    ("three cores for a task", {**FIXED, "task_cpus": "3"}, 12, Cores(3, 3)),
    ("nothing but a request to go by", {**ALLOCATED, **REQUESTED}, None, Cores(50, 100)),
    ("twice as many, where nothing limits the executors", ALLOCATED, 8, Cores(8, 16)),
    ("a request beyond what there can be", {**ALLOCATED, **REQUESTED, MOST: "5"}, None, Cores(20, 20)),
    ("nothing is set", {"master": "spark://there:7077"}, 6, Cores(6, 6)),
)
def test_as_many_tasks_as_run_at_once_are_counted(settings, counted, cores):
    assert cores_of(settings_of(**settings), counted) == cores


def test_a_session_knows_its_cores_behind_connect_too_and_takes_no_request_for_cores(session):
    assert CoresOf(session).count() == Cores(2, 2)
    name = "spark.sql.leafNodeDefaultParallelism"
    session.conf.set(name, "50")
    try:
        assert CoresOf(session).count() == Cores(2, 2)
    finally:
        session.conf.unset(name)
