"""Masters: parse the URL of a Spark master, and check that its host answers."""

import re
import socket
import threading
from concurrent.futures import Future, as_completed
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from dagkit.errors import RunFailure, near
from dagkit.ground.clock import patient
from dagkit.ground.urls import shown_master

LOCAL = re.compile(r"local(?:\[(\*|0*[1-9]\d*)(?:, *\d+)?\])?")
"""A master in this process, with its number of threads, and of failures that a task may have."""
_LOCAL_WITH_CORES = re.compile(r"local\W?([1-9]\d*|\*)\W?")
"""A local master whose number of threads has other brackets, or none."""
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d+")
_CLUSTER_HERE = re.compile(r"local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]")
_FORMS = (
    "local",
    "local[N]",
    "local[*]",
    "local[N,FAILURES]",
    "local-cluster[WORKERS,CORES,MEMORY]",
    "spark://HOST:PORT",
    "yarn",
    "k8s://HOST:PORT",
    "sc://HOST:PORT",
)
_CONNECT_PORT = 15002
_WITHIN_SECONDS = 8.0
"""The time within which the name of a host must be found, and the host must accept a connection."""

_CLOSED_WITHIN_SECONDS = 0.3
"""The time within which a tunnel closes a connection if nothing listens at its other end."""


class Kind(StrEnum):
    """What runs the executors."""

    LOCAL = "local"
    """The Java process of this Python process."""
    CLUSTER_HERE = "local-cluster"
    """Several processes on this machine, for tests."""
    STANDALONE = "spark"
    YARN = "yarn"
    KUBERNETES = "k8s"
    CONNECT = "sc"
    """A Spark Connect server, which has its own master."""


def spark_unavailable(problem: str, remedy: str = "") -> RunFailure:
    """No Spark answers at the URL, or Spark did not start."""
    return RunFailure(problem, remedy, code="spark-unavailable")


@dataclass(frozen=True, slots=True)
class Master:
    """A Spark master, or a Spark Connect server."""

    url: str
    kind: Kind
    hosts: tuple[tuple[str, int], ...] = ()
    """The hosts and ports at which it may listen. At least one must answer."""

    @classmethod
    def of(cls, url: str) -> "Master":
        """Parse a URL. Raise `master-invalid` if it does not have a form that Spark accepts."""
        if LOCAL.fullmatch(url):
            return cls(url, Kind.LOCAL)
        if _CLUSTER_HERE.fullmatch(url):
            return cls(url, Kind.CLUSTER_HERE)
        if url == "yarn":
            return cls(url, Kind.YARN)
        if url.startswith("local["):
            raise _invalid(url, "write local[N] with at least one core, or local[*] for all")
        scheme, slashes, rest = url.partition("://")
        if not slashes:
            raise _invalid(url, _nearest(url))
        match scheme:
            case "spark":
                return cls(url, Kind.STANDALONE, tuple(_host_in(url, address) for address in rest.split(",")))
            case "k8s":
                secure = not rest.startswith("http://")
                place = rest.partition("://")[2] if "://" in rest else rest
                return cls(url, Kind.KUBERNETES, (_host_in(url, place, 443 if secure else 80),))
            case "sc":
                return cls(url, Kind.CONNECT, (_host_in(url, rest, _CONNECT_PORT),))
        raise _invalid(url, _nearest(url))

    @property
    def is_local(self) -> bool:
        """Whether the Java process of this Python process runs the tasks, too."""
        return self.kind is Kind.LOCAL


def reach(master: Master) -> None:
    """Wait until one of the master's hosts accepts a connection. Raise `spark-unavailable` if none does in time.

    Behind a proxy nothing is checked.
    """
    # Spark itself would retry for minutes, and then print traces of two languages.
    hosts = [(host, port) for host, port in master.hosts if not _through_proxy(host)]
    if len(hosts) < len(master.hosts) or not hosts:
        return
    within, speaks = patient(_WITHIN_SECONDS), master.kind is not Kind.STANDALONE
    attempts = {_connect(host, port, within, speaks=speaks): (host, port) for host, port in hosts}
    with suppress(TimeoutError):
        if any(attempt.exception() is None for attempt in as_completed(attempts, within)):
            return
    problems = (_problem(host, made.exception() if made.done() else None, within) for made, host in attempts.items())
    raise spark_unavailable(f"no Spark at {shown_master(master.url)}: {'; '.join(problems)}", _help_for(master))


def _connect(host: str, port: int, within: float, *, speaks: bool) -> "Future[None]":
    """Open and close a connection in a thread. A master that never `speaks` first must not close it at once."""
    # In a thread, because the lookup of a host name cannot be interrupted.
    connected: Future[None] = Future()

    def connect() -> None:
        try:
            _open_and_close(host, port, within, speaks=speaks)
        except (OSError, UnicodeError, _Closing) as error:  # a UnicodeError: the text is not a valid host name
            connected.set_exception(error)
        else:
            connected.set_result(None)

    threading.Thread(target=connect, name=f"dagkit-reaches-{host}", daemon=True).start()
    return connected


def _open_and_close(host: str, port: int, within: float, *, speaks: bool) -> None:
    with socket.create_connection((host, port), timeout=within) as connection:
        # A tunnel accepts a connection also if nothing is at its other end, and then closes it.
        if not speaks and _is_closed(connection):
            raise _Closing


class _Closing(Exception):
    """The host accepts a connection and closes it at once."""


def _is_closed(connection: socket.socket) -> bool:
    connection.settimeout(_CLOSED_WITHIN_SECONDS)
    try:
        return not connection.recv(1)
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def _problem(where: tuple[str, int], error: BaseException | None, within: float) -> str:
    host, port = where
    match error:
        case socket.gaierror() | UnicodeError():
            return f"there is no host {host!r}"
        case _Closing():
            return f"{host}:{port} closes every connection"
        case ConnectionRefusedError():
            return f"nothing listens at {host}:{port}"
        case None | TimeoutError():
            return f"{host}:{port} did not answer within {within:g} s"
    return f"{host}:{port} cannot be reached: {getattr(error, 'strerror', None) or error}"


def _help_for(master: Master) -> str:
    if master.kind is Kind.STANDALONE:
        return "check the host and the port; a standalone master shows its URL on its web page, usually at port 8080"
    if master.kind is Kind.CONNECT:
        return "check the host and the port, and that the Spark Connect server runs; its usual port is 15002"
    return "check the host and the port; `kubectl cluster-info` prints the address of the API server"


def _through_proxy(host: str) -> bool:
    """Whether connections to the host use a proxy, which may reach hosts that this machine cannot."""
    return bool(getproxies().keys() & {"all", "grpc", "http", "https"}) and not proxy_bypass(host)


def _host_in(url: str, place: str, otherwise: int | None = None) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{place.partition(';')[0]}")
        host, port = parts.hostname, parts.port or otherwise
    except ValueError:  # invalid brackets or an invalid port
        host, port = None, None
    if not host or port is None:
        meant = {"spark": "spark://HOST:PORT", "k8s": "k8s://HOST:PORT"}.get(url.partition(":")[0], "sc://HOST:PORT")
        raise _invalid(url, f"write {meant}" + (", as in spark://master:7077" if otherwise is None else ""))
    return host, port


def _nearest(url: str) -> str:
    """What an invalid URL may mean. Schemes are compared without `://`, which would make any two of them similar."""
    numbered = _LOCAL_WITH_CORES.fullmatch(url)
    if numbered is not None:
        return f"did you mean local[{numbered[1]}]?"
    if _HOST_AND_PORT.fullmatch(url):
        return f"did you mean spark://{url}?"
    known = {form.partition("[")[0].partition("://")[0]: form for form in reversed(_FORMS)}
    meant = near(re.split(r"[\[:]", url)[0], known)
    return f"did you mean {known[meant]}?" if meant else f"a master is one of {', '.join(_FORMS)}"


def _invalid(url: str, help: str) -> RunFailure:  # noqa: A002 - what it is
    return RunFailure(f"{shown_master(url)!r} is not a Spark master", help, code="master-invalid")
