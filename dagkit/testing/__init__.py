"""Tools for tests: an operator or an application in memory, a fake clock, crashes, and checks of contracts.

Its pytest plugin provides the fixtures `crashes` and `fake_clock`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dagkit.deferred_names import deferred

if TYPE_CHECKING:
    from dagkit.testing.alone import Alone
    from dagkit.testing.crashes import Crash, CrashAfter, Crashes
    from dagkit.testing.fake_clock import FakeClock
    from dagkit.testing.operator_checks import ContractBroken, check_operator
    from dagkit.testing.rehearsal import Outputs, Rehearsal, run_app
    from dagkit.testing.sink_checks import check_sink
    from dagkit.testing.source_checks import check_source
    from dagkit.testing.split_checks import SplitsBroken, check_every_split
    from dagkit.testing.work_checks import check_every_split_of

_HOMES: Mapping[str, str] = {
    "Alone": "alone",
    "ContractBroken": "operator_checks",
    "Crash": "crashes",
    "CrashAfter": "crashes",
    "Crashes": "crashes",
    "FakeClock": "fake_clock",
    "Outputs": "rehearsal",
    "Rehearsal": "rehearsal",
    "SplitsBroken": "split_checks",
    "check_every_split": "split_checks",
    "check_every_split_of": "work_checks",
    "check_operator": "operator_checks",
    "check_sink": "sink_checks",
    "check_source": "source_checks",
    "run_app": "rehearsal",
}

__all__ = [
    "Alone",
    "ContractBroken",
    "Crash",
    "CrashAfter",
    "Crashes",
    "FakeClock",
    "Outputs",
    "Rehearsal",
    "SplitsBroken",
    "check_every_split",
    "check_every_split_of",
    "check_operator",
    "check_sink",
    "check_source",
    "run_app",
]


def __getattr__(name: str) -> Any:
    return deferred(__name__, _HOMES, name)
