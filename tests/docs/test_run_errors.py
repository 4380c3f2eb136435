"""The second part of `docs/errors.md`: each cause gives its code, and its cure, in the same folder, succeeds."""

import ast
import json
import sys
from collections import Counter
from collections.abc import Mapping

import pytest

from dagkit.errors import RUN_CODES, ApplicationFaults, DagkitError, RunFailure
from dagkit.ledger import LedgerError
from dagkit.ranges import RangeFault
from dagkit_operators.filesystem.access import BadFile
from tests.docs.fences import ROOT, fences_in
from tests.exceptions import exceptions
from tests.lint.pages import is_cause
from tests.processes import run_program

PAGE = ROOT / "docs/errors.md"
FENCES = fences_in(PAGE)
SHARED = [fence for fence in FENCES if fence.role == "shared"]
BASES = (BadFile, DagkitError, RunFailure, RangeFault)
"""Nothing raises these themselves."""
ON_SPARK = {"codec-failed", "session-mismatched", "spark-failed", "spark-ended", "spark-incomplete", "worker-failed"}
"""Codes whose programs start or kill a Spark, and run in a process of their own."""
WITHOUT_CODE: Mapping[str, str] = {
    # the command line prints these itself, with an exit code of their own
    "cli.terminal.output.Interrupted": "the user's own Ctrl-C",
    "cli.terminal.output.WrongUsage": "click's message about an argument, with the usage of the command",
    # the rules and the configuration make diagnostics of these, which have codes
    "conf.sources.user_files.ParseError": "a diagnostic of the property file",
    "conf.grammar.property_keys._Refused": "key-malformed",
    "conf.sources.references.Unresolved": "reference-unresolved",
    "conf.values.classes.ClassNotFound": "class-not-found",
    "conf.values.classes.ForeignCode": "class-not-found",
    "conf.values.object_making.CodeRefused": "property-invalid",
    "conf.values.object_making.Unfit": "property-invalid",
    "ground.names_of_apex.NamedElsewhere": "an ImportError of the author's code, as Python's own, with what to write",
    "observers.named_observers.ObserverUnknown": "WrongUsage in `dagkit launch`",
    "runs.retrace.LineUnknown": "WrongUsage in `dagkit trace`",
    "scaling.policy.PolicyUnknown": "property-invalid; WrongUsage in `dagkit scale`",
    # dagkit catches these where it raises them, and reports failures with codes
    "api.tagged.Unwritable": "item-unwritable, state-unwritable",
    "runs.window_again.NotFoundAgain": "the reason in the answer of `dagkit trace`; replay-refused",
    "engine.program.failures.WindowAbandoned": "the loop has forgotten the window, which runs again at the next launch",
    "backends.spark.shipping.forms.NoForm": "such items are pickled",
    "backends.spark.session.master._Closing": "ends a thread that waits for a port",
    "backends.spark.window.task._FailedAbove": "the task above reports its own failure",
    "dagkit_operators.kafka.topics.Unanswered": "the splitter and the reader wait, and ask again",
    "dagkit_operators.formats.json_lines.NotObjects": "the lines are read one by one, which finds the bad one",
    "dagkit_operators.formats.line_format.RowRefused": "the reader rejects the row, or looks for the bad one",
    "dagkit_operators.filesystem.object_store.VersionsUnknown": "Arrow lists the objects instead",
    "dagkit_operators.finding.contents.StillChanging": "the file is found by a later scan",
    "dagkit_operators.finding.control_files.TrailerMissing": "the file is pending",
    "dagkit_operators.finding.control_files._NoNumber": "the file is quarantined with this reason",
    "ledger.stores.store.KeyMissing": "the ledger raises a LedgerError",
    "ledger.stores.store.KeyTaken": "the ledger raises a LedgerError",
    "render.engines._CannotDraw": "drawing-failed",
    # these are raised for dagkit, or in tests, and by no run
    "engine.program.failures.Interrupted": "a second signal ends the process with the status of that signal",
    "engine.files.deliveries._Away": "system-unavailable, if the run does not wait any longer",
    "api.running.Shutdown": "an input operator raises it to say that it has no more input",
    "testing.crashes.Crash": "a test injects it in the place of a crash",
    "testing.operator_checks.ContractBroken": "an assertion of a test, as below",
    "testing.split_checks.SplitsBroken": "an assertion of a test, which pytest shows",
}
"""Each exception that no user meets in a failure, without the package of dagkit, and why not."""
ALONE = """
import json, sys
from dagkit.errors import RunFailure

cause, *cures = json.loads(sys.stdin.read())
module = {"__name__": "__main__"}
try:
    exec(cause, module)
except RunFailure as failure:
    print(failure.code)
for cure in cures:
    exec(cure, module)
print("cured")
"""


def test_every_code_is_raised_and_every_class_has_a_code_of_its_own():
    kinds = [kind for kind in exceptions() if issubclass(kind, RunFailure) and kind not in BASES]
    owned = Counter(kind.code for kind in kinds if "code" in vars(kind))
    assert owned.keys() | set(_codes_of_functions()) == set(RUN_CODES)
    assert [code for code, classes in owned.items() if classes > 1] == ["input-unreadable"]


def _codes_of_functions():
    """The codes with which the product makes failures that have no class of their own."""
    files = [file for package in ("dagkit", "operators") for file in (ROOT / package).rglob("*.py")]
    calls = [node for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    given = [word.value for call in calls for word in call.keywords if word.arg == "code"]
    return {value.value for value in given if isinstance(value, ast.Constant)} & set(RUN_CODES)


def test_every_exception_without_a_code_is_listed_with_the_reason():
    uncoded = [kind for kind in exceptions() if not issubclass(kind, RunFailure | LedgerError | ApplicationFaults)]
    names = {f"{kind.__module__}.{kind.__qualname__}".removeprefix("dagkit.") for kind in uncoded if kind not in BASES}
    assert names == set(WITHOUT_CODE)


@pytest.mark.parametrize("code", [code for code in RUN_CODES if code not in ON_SPARK])
def test_the_cause_gives_its_code_and_the_cure_succeeds(code, room):
    for fence in SHARED:
        room.run(fence)
    for fence in _under(code):
        if fence.file_name is not None:
            room.keep(fence)
        elif fence.language == "console":
            assert room.type_in(fence) == fence.text
            assert (f" [{code}]\n  help: " in fence.text) is is_cause(fence)
        elif is_cause(fence):
            with pytest.raises(RunFailure) as raised:
                room.run(fence)
            assert (raised.value.code, bool(raised.value.help)) == (code, True)
        else:
            room.run(fence)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "code",
    [code if code == "spark-failed" else pytest.param(code, marks=pytest.mark.trial) for code in sorted(ON_SPARK)],
)
def test_on_spark_the_cause_gives_its_code_and_the_cure_succeeds(code, tmp_path):
    for fence in _under(code):
        if fence.file_name is not None:
            (tmp_path / fence.file_name).write_text(fence.text, encoding="utf-8")
    programs = json.dumps([fence.text for fence in _under(code) if fence.file_name is None])
    answer = run_program([sys.executable, "-c", ALONE], input=programs, cwd=tmp_path, seconds=120)
    assert answer.stdout.split() == [code, "cured"]


def _under(code):
    return [fence for fence in FENCES if fence.heading == code]
