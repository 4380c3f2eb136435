"""Masters: their forms are checked before Spark starts, and so is whether their hosts answer."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from dagkit.backends.spark.master import Kind, Master, MasterInvalid, SparkUnavailable, reach
from tests.patience import join


@pytest.mark.parametrize(
    ("url", "kind", "hosts"),
    [
        ("local", Kind.LOCAL, ()),
        ("local[4]", Kind.LOCAL, ()),
        ("local[*]", Kind.LOCAL, ()),
        ("local[2,3]", Kind.LOCAL, ()),
        ("local[*, 3]", Kind.LOCAL, ()),
        ("local-cluster[2,1,1024]", Kind.CLUSTER_HERE, ()),
        ("yarn", Kind.YARN, ()),
        ("spark://master:7077", Kind.STANDALONE, (("master", 7077),)),
        ("spark://one:7077,two:7078", Kind.STANDALONE, (("one", 7077), ("two", 7078))),
        ("spark://[::1]:7077", Kind.STANDALONE, (("::1", 7077),)),
        ("k8s://https://api:6443", Kind.KUBERNETES, (("api", 6443),)),
        ("k8s://api", Kind.KUBERNETES, (("api", 443),)),
        ("k8s://http://api", Kind.KUBERNETES, (("api", 80),)),
        ("sc://server", Kind.CONNECT, (("server", 15002),)),
        ("sc://server:443/;use_ssl=true;token=a", Kind.CONNECT, (("server", 443),)),
    ],
)
def test_a_master_is_known_by_its_url(url, kind, hosts):
    assert Master.of(url) == Master(url, kind, hosts)


FORMS = (
    "local, local[N], local[*], local[N,FAILURES], local-cluster[WORKERS,CORES,MEMORY], spark://HOST:PORT, yarn, "
    "k8s://HOST:PORT, sc://HOST:PORT"
)


@pytest.mark.parametrize(
    ("url", "help_line"),
    [
        ("sprak://master:7077", "did you mean spark://HOST:PORT?"),
        ("spark:master:7077", "did you mean spark://HOST:PORT?"),
        ("yran", "did you mean yarn?"),
        ("Local", "did you mean local?"),
        ("lokal[2]", "did you mean local?"),
        ("local[0]", "write local[N] with at least one core, or local[*] for all"),
        ("local[two]", "write local[N] with at least one core, or local[*] for all"),
        ("local-cluster[2,1]", "did you mean local-cluster[WORKERS,CORES,MEMORY]?"),
        ("k8://api", "did you mean k8s://HOST:PORT?"),
        ("spark://master", "write spark://HOST:PORT, as in spark://master:7077"),
        ("spark://:7077", "write spark://HOST:PORT, as in spark://master:7077"),
        ("spark://master:port", "write spark://HOST:PORT, as in spark://master:7077"),
        ("sc://", "write sc://HOST:PORT"),
        ("http://master:8080", f"a master is one of {FORMS}"),
    ],
)
def test_what_is_no_master_is_refused_with_what_was_meant(url, help_line):
    with pytest.raises(MasterInvalid) as raised:
        Master.of(url)
    assert str(raised.value) == f"{url!r} is not a Spark master [master-invalid]\n  help: {help_line}"
    assert raised.value.exit_code == 2


@contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@contextmanager
def nothing_listening() -> Iterator[int]:
    """A port that is taken, and refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


def refusal(url: str, within: float = 60.0) -> str:
    with pytest.raises(SparkUnavailable) as raised:
        reach(Master.of(url), within)
    assert raised.value.exit_code == 9
    assert raised.value.help
    return raised.value.problem


def test_a_host_that_listens_is_reached():
    with listening() as server:
        reach(Master.of(f"sc://127.0.0.1:{server.getsockname()[1]}"))


def test_one_of_several_masters_is_enough():
    with listening() as server, nothing_listening() as port:
        reach(Master.of(f"spark://127.0.0.1:{port},127.0.0.1:{server.getsockname()[1]}"))


@pytest.mark.parametrize("form", ["spark://127.0.0.1:{}", "k8s://https://127.0.0.1:{}", "sc://127.0.0.1:{}"])
def test_a_port_at_which_nothing_listens_is_reported(form):
    with nothing_listening() as port:
        assert refusal(form.format(port)) == f"no Spark at {form.format(port)}: nothing listens at 127.0.0.1:{port}"


@pytest.mark.parametrize("host", ["no.such.host.invalid", f"{'a' * 64}.invalid", "a..invalid"])
def test_a_host_that_does_not_exist_is_reported(host):
    assert refusal(f"spark://{host}:7077") == f"no Spark at spark://{host}:7077: there is no host {host!r}"


def test_every_master_that_does_not_answer_is_named():
    with nothing_listening() as port:
        told = refusal(f"spark://no.such.host.invalid:7077,127.0.0.1:{port}")
    assert told.endswith(f": there is no host 'no.such.host.invalid'; nothing listens at 127.0.0.1:{port}")


def test_a_host_that_never_answers_is_not_waited_for():
    with socket.socket() as full, socket.socket() as first:  # who connects after the first waits for ever
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        place = full.getsockname()
        first.connect(place)
        assert refusal(f"sc://127.0.0.1:{place[1]}", 0.1).endswith(f"127.0.0.1:{place[1]} did not answer within 0.1 s")


def test_a_tunnel_whose_far_end_is_gone_is_no_master():
    def accept() -> None:
        server.accept()[0].close()

    with listening() as server:
        tunnel = Thread(target=accept)
        tunnel.start()
        place = f"127.0.0.1:{server.getsockname()[1]}"
        assert refusal(f"spark://{place}") == f"no Spark at spark://{place}: {place} closes every connection"
        join(tunnel, seconds=120)


def test_a_host_behind_a_proxy_is_left_to_the_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    reach(Master.of("sc://no.such.host.invalid"))


def test_a_local_master_has_no_host_to_reach():
    reach(Master.of("local[2]"))
