"""What a run reports: failures when they happen, missing services in CI, and tests that needed a second try."""

import logging
import os
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest
from _pytest.runner import runtestprotocol

from tests.run.groups import services_of

MOST_FLAKY = 2
"""More tests than these that needed a second try fail the run."""

_FLAKY = "flaky"
_OURS = ("apps", "bench", "dagkit", "dagkit_operators", "tests")

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Reporter(config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[pytest.TestReport]:
    """Where everything must be there, a test that skips itself fails."""
    return _required((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[pytest.CollectReport]:
    """As above, for a module that skips itself. A module that imports what is not installed is skipped."""
    report = yield
    call = getattr(report, "call", None)
    cause = call.excinfo.value.__cause__ if call is not None and call.excinfo is not None else None
    if isinstance(cause, ModuleNotFoundError) and cause.name and cause.name.partition(".")[0] not in _OURS:
        report.outcome = "skipped"
        report.longrepr = (report.nodeid, 0, f"Skipped: no module {cause.name}: pip install 'dagkit[dev]'")
    return _required(report)


def _required(report: Report) -> Report:
    """The report; a failure instead of a skip if `DAGKIT_REQUIRE_ALL` is set, as `.ci/run` does."""
    if report.outcome == "skipped" and not hasattr(report, "wasxfail") and os.environ.get("DAGKIT_REQUIRE_ALL"):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, and nothing may be missing here: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call() -> Iterator[None]:
    """Keep the form of captured log records.

    pytest adds its handler to loggers that do not propagate, and such a logger of PySpark gives each of its handlers a
    form of its own, JSON, for the rest of the run. PySpark makes two of them when a query fails.
    """
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        if name in logging.root.manager.loggerDict:
            logging.getLogger(name).propagate = True
    return (yield)


pytest_runtest_setup = pytest_runtest_teardown = pytest_runtest_call


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Try a test of a service once more after a failure: the service may have had a bad moment."""
    if not services_of(item):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports):
        first = "\n".join(report.longreprtext for report in reports if report.failed)
        item._initrequest()  # type: ignore[attr-defined] # the second try gets fixtures of its own
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        for report in reports:
            report.user_properties.append((_FLAKY, first))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


class _Reporter:
    """Prints in the process that the user started."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._flaky: dict[str, str] = {}

    @property
    def _terminal(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        first = dict(report.user_properties).get(_FLAKY)
        if report.failed:
            self._print(f"FAILED {report.nodeid} ({report.when})", report.longreprtext)
            if first is not None:
                self._print(f"{report.nodeid} at its first try:", str(first))
        elif report.when == "call" and first is not None:
            self._flaky[report.nodeid] = str(first)
            self._print(f"FLAKY {report.nodeid}: it passed at the second try, after", str(first))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if len(self._flaky) > MOST_FLAKY and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self) -> None:
        if self._flaky:
            self._terminal.section(f"{len(self._flaky)} flaky, of at most {MOST_FLAKY}")
            for nodeid in self._flaky:
                self._terminal.write_line(f"FLAKY {nodeid}")

    def _print(self, title: str, text: str) -> None:
        self._terminal.ensure_newline()
        self._terminal.write_line(title)
        self._terminal.write_line(text)
