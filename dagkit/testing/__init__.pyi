# The names of this package, each with the module that defines it. Type checkers and `__init__.py` read this list.

from dagkit.testing.alone import Alone as Alone
from dagkit.testing.crashes import Crash as Crash
from dagkit.testing.crashes import CrashAfter as CrashAfter
from dagkit.testing.crashes import Crashes as Crashes
from dagkit.testing.crashes import FakeClock as FakeClock
from dagkit.testing.operator_checks import ContractBroken as ContractBroken
from dagkit.testing.operator_checks import check_operator as check_operator
from dagkit.testing.rehearsal import Outputs as Outputs
from dagkit.testing.rehearsal import Rehearsal as Rehearsal
from dagkit.testing.rehearsal import run_app as run_app
from dagkit.testing.sink_checks import check_sink as check_sink
from dagkit.testing.source_checks import check_source as check_source
from dagkit.testing.split_checks import SplitsBroken as SplitsBroken
from dagkit.testing.split_checks import check_every_split as check_every_split
from dagkit.testing.work_checks import check_every_split_of as check_every_split_of
