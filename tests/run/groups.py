"""Which tests run in one process, and in which order: each service starts once, in one process of `pytest -n 2`."""

import json
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

SERVICES = {
    "spark": ("spark", "connected", "session"),
    "kafka": ("kafka", "certified"),
    "browser": ("browser",),
    "postgres": ("postgres",),
    "s3": ("bucket",),
    "rabbitmq": ("rabbitmq", "broker"),
    "azure": ("azurite",),
    "hdfs": ("hdfs",),
    "yarn": ("yarn",),
    "cluster": ("cluster",),
}
"""The fixtures that start each service. A test with several runs in the process of the first one."""

ONLY_IN_TRIALS = ("azure", "hdfs", "yarn", "cluster")
"""Services without which the gate shows as much: other services share their code, or they take long to start."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--only", metavar="NAME", help="run the tests of one service, folder or module")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark what uses a service, and run it first; slow tests run last.

    The groups of services are the longest, and no other process can help with them. A wrapper comes before
    `-m`, which may ask for services.
    """
    for item in items:
        for service in _used_by(item):
            item.add_marker(pytest.mark.service(service))
            if service in ONLY_IN_TRIALS:
                item.add_marker(pytest.mark.trial)
    items.sort(key=_place)
    if only := config.getoption("--only"):
        others = [item for item in items if only not in services_of(item) + _names_of(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]
    return (yield)


def services_of(item: pytest.Item) -> list[str]:
    """The services that a test uses, after its collection; that of its process comes first."""
    named = {mark.args[0] for mark in item.iter_markers("service")}
    return [service for service in SERVICES if service in named]


def _used_by(item: pytest.Item) -> list[str]:
    """The services that a test names by a marker or a fixture, in the order of SERVICES."""
    marks = {mark.name for mark in item.iter_markers()}
    named = {*services_of(item), *getattr(item, "fixturenames", ()), *marks}
    return [service for service, fixtures in SERVICES.items() if not named.isdisjoint({service, *fixtures})]


def _names_of(item: pytest.Item) -> list[str]:
    """The names of its folders and its module."""
    return [*item.path.parts, item.path.stem, item.path.stem.removeprefix("test_")]


def _place(item: pytest.Item) -> tuple[int, bool]:
    services = services_of(item)
    place = list(SERVICES).index(services[0]) if services else len(SERVICES)
    return place, item.get_closest_marker("slow") is not None


class InOrder(LoadScopeScheduling):
    """Hands out the tests in the order in which they were collected: a service at once, other tests by files.

    Neighbours of one file share its fixtures. A file has several groups of neighbours, since slow tests, and those that
    use a service, stand elsewhere.
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # xdist would begin with the longest groups
        self._services_file = config.stash[_SERVICES_FILE]
        self._groups: dict[str, str] = {}
        self._scope = ""

    @cached_property
    def _services(self) -> dict[str, str]:
        """The first service of each test that uses one."""
        services: dict[str, str] = json.loads(self._services_file.read_text())
        return services

    def _split_scope(self, nodeid: str) -> str:
        """The group of a test. Scheduling asks for all tests in their order before it asks again for one."""
        if nodeid not in self._groups:
            scope = self._services.get(nodeid) or nodeid.partition("::")[0]
            new = f"{len(self._groups)} {scope}"
            self._groups[nodeid] = new if scope != self._scope else next(reversed(self._groups.values()))
            self._scope = scope
        return self._groups[nodeid]

    def remove_node(self, node: WorkerController) -> str | None:
        """Return the test that ended a process, if one did, and give the process's other tests to the others.

        pytest-xdist itself would run that test again and again.
        """
        work = self.assigned_work.pop(node)
        unfinished = [(unit, nodeid) for unit in work.values() for nodeid, is_done in unit.items() if not is_done]
        if not unfinished:
            return None
        unit, ended_by = unfinished[0]
        unit[ended_by] = True
        self.workqueue.update({scope: unit for scope, unit in work.items() if not all(unit.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return ended_by

    def _reschedule(self, node: WorkerController) -> None:
        """Give a process more tests, or let it end after those that it has.

        A process begins a test when it knows the next one, or that none comes: with one test it waits. pytest-xdist
        looks after that when a run begins, but not when a process replaces another one.
        """
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)


_SERVICES_FILE: Final = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="services-of-tests-")
        config.add_cleanup(folder.cleanup)
        config.stash[_SERVICES_FILE] = Path(folder.name) / "services.json"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Let the first process write the services of tests to a file: the scheduler sees only names."""
    if node.gateway.id == "gw0":
        node.workerinput["services_file"] = str(node.config.stash[_SERVICES_FILE])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    if file := getattr(session.config, "workerinput", {}).get("services_file"):
        services = {item.nodeid: services_of(item) for item in session.items}
        Path(file).write_text(json.dumps({nodeid: names[0] for nodeid, names in services.items() if names}))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> InOrder:
    return InOrder(config, log)
