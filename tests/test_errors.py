"""Faults as values: how they are printed, ordered by weight, pickled, and what near name is suggested."""

import pickle

from dagkit import errors
from dagkit.errors import (
    ApplicationFaults,
    ApplicationNotFound,
    DagkitError,
    Diagnostic,
    DrawingFailed,
    RunFailure,
    Scene,
    Severity,
    Where,
    address_taken,
    did_you_mean,
    errors_among,
    plan_unreadable,
    report,
)
from tests.cases import cases

WRONG = Diagnostic("stream-unfed", "stream 's' has no source", "name one", Where("app.py", 3))
ODD = Diagnostic("mode-mismatch", "b becomes AT_MOST_ONCE", "say so", None, Severity.WARNING)
IDLE = Diagnostic("attribute-advisory", "DEBUG has no effect", "remove it", Where("app.xml"), Severity.ADVISORY)


@cases(
    "diagnostic, text",
    ("an error with its line", WRONG, "app.py:3: stream 's' has no source [stream-unfed]\n  help: name one"),
    ("a warning from nowhere", ODD, "warning: b becomes AT_MOST_ONCE [mode-mismatch]\n  help: say so"),
    ("an advice about a file", IDLE, "app.xml: advisory: DEBUG has no effect [attribute-advisory]\n  help: remove it"),
)
def test_a_diagnostic_is_reported_with_place_code_and_help(diagnostic, text):
    assert str(diagnostic) == text


def test_a_report_counts_errors_and_lists_everything():
    assert report("App", [WRONG, ODD]) == (
        "App cannot be compiled: 1 problem\n"
        "  app.py:3: stream 's' has no source [stream-unfed]\n"
        "    help: name one\n"
        "  warning: b becomes AT_MOST_ONCE [mode-mismatch]\n"
        "    help: say so"
    )
    assert report("App", [WRONG, WRONG]).startswith("App cannot be compiled: 2 problems\n")
    assert report("App", [ODD]).startswith("App compiles\n")


def test_only_errors_stop_the_compiler():
    assert errors_among([ODD, WRONG, IDLE]) == (WRONG,)
    assert ApplicationFaults("App", [ODD, WRONG, IDLE]).codes == ("stream-unfed",)


def test_faults_survive_pickling():
    faults = pickle.loads(pickle.dumps(ApplicationFaults("App", [WRONG, ODD])))  # noqa: S301 - our own bytes
    assert (faults.application, faults.diagnostics) == ("App", (WRONG, ODD))
    assert str(faults) == str(ApplicationFaults("App", [WRONG, ODD]))


@cases(
    "name, known, help_",
    ("a near name", "word", ["lines", "words"], "did you mean 'words'?"),
    ("whatever the case", "WORDS", ["lines", "words"], "did you mean 'words'?"),
    ("none is near", "colour", ["lines", "words"], "known here: 'lines', 'words'"),
    ("there is none", "colour", [], "none exist here"),
    ("a dozen at most", "x", [*"bcdefghijklmnopq"], f"known here: {str([*'bcdefghijklm'])[1:-1]} and 4 more"),
)
def test_the_nearest_name_is_suggested(name, known, help_):
    assert did_you_mean(name, known) == help_


def test_what_else_to_try_stands_in_for_a_list():
    assert did_you_mean("colour", ["lines"], otherwise="ask the author") == "ask the author"
    assert did_you_mean("line", ["lines"], otherwise="ask the author") == "did you mean 'lines'?"


def test_exceptions_own_their_exit_codes():
    owned = [
        ApplicationFaults("App", []),
        ApplicationNotFound("none here"),
        plan_unreadable("no plan", "compile one"),
        DrawingFailed("no dot"),
        RunFailure("it ended", code="worker-failed"),
    ]
    assert [error.exit_code for error in owned] == [3, 6, 6, 5, 7]
    assert DagkitError.exit_code == 1


def test_a_failure_of_a_run_is_shown_with_its_code_and_help_and_survives_pickling():
    failure = address_taken(
        "the metrics", "--metrics-port", "192.0.2.1", 9090, OSError(99, "Cannot assign requested address")
    )
    failure.scene = Scene("Reader", 3, 1, "a.txt", 1370)
    for one in (failure, pickle.loads(pickle.dumps(failure))):  # noqa: S301 - our own bytes
        assert str(one) == (
            "the metrics cannot be served at 192.0.2.1:9090: Cannot assign requested address [address-taken]\n"
            "  help: choose another port with --metrics-port (0: any free one), or an address of this machine"
        )
        assert (one.code, one.exit_code, one.scene) == ("address-taken", 5, Scene("Reader", 3, 1, "a.txt", 1370))


def test_the_code_of_a_failure_stands_on_its_first_line():
    failed = ApplicationNotFound("two.py holds several applications\n  One\n  Two", "choose one")
    assert str(failed) == "two.py holds several applications [application-missing]\n  One\n  Two\n  help: choose one"


def test_the_module_draws_every_exception_that_it_defines():
    defined = [
        name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, DagkitError)
    ]
    assert all(name in (errors.__doc__ or "") for name in defined)
