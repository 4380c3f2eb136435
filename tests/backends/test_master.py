"""Masters: their forms are checked before Spark starts, and so is whether their hosts answer."""

import socket
from threading import Thread

import pytest

from dagkit.backends.spark.session.master import Kind, Master, reach
from dagkit.errors import RunFailure
from tests.patience import join


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


def refusal(url: str, within: float = 60.0) -> str:
    with pytest.raises(RunFailure, match=r"\[spark-unavailable\]") as raised:
        reach(Master.of(url), within)
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


def test_a_host_that_never_answers_is_not_waited_for():
    with socket.socket() as full, socket.socket() as first:  # who connects after the first waits for ever
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        place = full.getsockname()
        first.connect(place)
        assert refusal(f"sc://127.0.0.1:{place[1]}", 0.1).endswith(f"127.0.0.1:{place[1]} did not answer within 0.1 s")


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
