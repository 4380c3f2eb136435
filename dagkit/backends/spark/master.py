"""Masters: the forms that a master's URL may have, and whether the host in it answers."""

import re
import socket
import threading
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from dagkit.errors import RunFailure, near

LOCAL = re.compile(r"local(?:\[(\*|0*[1-9]\d*)(?:, *\d+)?\])?")
"""A master in this very process: its threads, and how often a task may fail."""
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
"""How long a host has to be found and to accept a connection."""

_CLOSED_WITHIN_SECONDS = 0.3
"""How soon a tunnel without a far end closes a connection."""


class Kind(StrEnum):
    """Who runs the executors."""

    LOCAL = "local"
    """This process's own Java."""
    CLUSTER_HERE = "local-cluster"
    """Processes of this machine, as a cluster would have them: for tests."""
    STANDALONE = "spark"
    YARN = "yarn"
    KUBERNETES = "k8s"
    CONNECT = "sc"
    """A Spark Connect server, which has a master of its own."""


class MasterInvalid(RunFailure):
    """Spark knows no master of this form."""

    code = "master-invalid"
    exit_code: ClassVar[int] = 2


class SparkUnavailable(RunFailure):
    """No Spark answers at a master or behind a Connect server, or it did not start."""

    code = "spark-unavailable"
    exit_code: ClassVar[int] = 9


@dataclass(frozen=True, slots=True)
class Master:
    """Where Spark is."""

    url: str
    kind: Kind
    hosts: tuple[tuple[str, int], ...] = ()
    """Where it listens; one of them must answer."""

    @classmethod
    def of(cls, url: str) -> "Master":
        """The master at a URL; raises `MasterInvalid` if Spark does not know its form."""
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
            raise _invalid(url, _nearest(re.split(r"[\[:]", url)[0]))
        match scheme:
            case "spark":
                return cls(url, Kind.STANDALONE, tuple(_host_in(url, address) for address in rest.split(",")))
            case "k8s":
                secure = not rest.startswith("http://")
                place = rest.partition("://")[2] if "://" in rest else rest
                return cls(url, Kind.KUBERNETES, (_host_in(url, place, 443 if secure else 80),))
            case "sc":
                return cls(url, Kind.CONNECT, (_host_in(url, rest, _CONNECT_PORT),))
        raise _invalid(url, _nearest(f"{scheme}://"))

    @property
    def is_local(self) -> bool:
        """Whether this process's Java runs the tasks, too."""
        return self.kind is Kind.LOCAL


def reach(master: Master, within: float = _WITHIN_SECONDS) -> None:
    """Wait until one of the master's hosts accepts a connection; raises `SparkUnavailable` if none does in time.

    Spark itself tries for minutes, and ends with the traces of two languages.
    """
    hosts = [(host, port) for host, port in master.hosts if not _through_proxy(host)]
    if len(hosts) < len(master.hosts) or not hosts:
        return
    speaks = master.kind is not Kind.STANDALONE
    waiting = {_connecting(host, port, within, speaks=speaks): (host, port) for host, port in hosts}
    pending = set(waiting)
    while pending:
        done, pending = wait(pending, timeout=within, return_when=FIRST_COMPLETED)
        if any(one.exception() is None for one in done):
            return
        if not done:
            break
    problems = (_problem(where, one.exception() if one.done() else None, within) for one, where in waiting.items())
    raise SparkUnavailable(f"no Spark at {master.url}: {'; '.join(problems)}", _help_for(master))


def _connecting(host: str, port: int, within: float, *, speaks: bool) -> "Future[None]":
    """A connection that is opened and closed in a thread of its own: looking up a name cannot be interrupted.

    The host of a standalone master never `speaks` first, and keeps the connection; a tunnel without a far end does not.
    """
    connected: Future[None] = Future()

    def connect() -> None:
        try:
            _open_and_close(host, port, within, speaks=speaks)
        except (OSError, UnicodeError, _Closing) as error:  # a UnicodeError: the name cannot be looked up
            connected.set_exception(error)
        else:
            connected.set_result(None)

    threading.Thread(target=connect, name=f"dagkit-reaches-{host}", daemon=True).start()
    return connected


def _open_and_close(host: str, port: int, within: float, *, speaks: bool) -> None:
    with socket.create_connection((host, port), timeout=within) as connection:
        if not speaks and _is_closed(connection):
            raise _Closing


class _Closing(Exception):
    """The host accepts a connection and closes it."""


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
    """Whether connections to the host go through a proxy, which may find what this machine cannot."""
    return bool(getproxies().keys() & {"all", "grpc", "http", "https"}) and not proxy_bypass(host)


def _host_in(url: str, place: str, otherwise: int | None = None) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{place.partition(';')[0]}")
        host, port = parts.hostname, parts.port or otherwise
    except ValueError:  # brackets or a port that are none
        host, port = None, None
    if not host or port is None:
        meant = {"spark": "spark://HOST:PORT", "k8s": "k8s://HOST:PORT"}.get(url.partition(":")[0], "sc://HOST:PORT")
        raise _invalid(url, f"write {meant}" + (", as in spark://master:7077" if otherwise is None else ""))
    return host, port


def _nearest(beginning: str) -> str:
    known = {form.partition("[")[0].partition("HOST")[0]: form for form in reversed(_FORMS)}
    meant = near(beginning, known)
    return f"did you mean {known[meant]}?" if meant else f"a master is one of {', '.join(_FORMS)}"


def _invalid(url: str, help: str) -> MasterInvalid:  # noqa: A002 - what it is
    return MasterInvalid(f"{url!r} is not a Spark master", help)
