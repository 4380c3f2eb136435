"""Forms that let a test of the gate depend on the speed of a machine, or on what else runs on it.

Trials may use them: functions, classes and modules that are marked `trial`, and what OTHERS names. A line may sleep
if its comment says why, as `# sleeps: the operator hangs`. A hang guard compares a clock with `until`.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tests.lint.breach import ROOT, Breach

MODULES: Final = ("tests/**/*.py", "apps/**/test_*.py")
OTHERS: Final = tuple(f"tests/{name}" for name in ("soak/", "cluster/", "faults/trials", "faults/spark_trials", "run/"))
"""Trials, and what ends tests that hang."""
_CLOCKS: Final = re.compile(r"time\.(monotonic|perf_counter|process_time|time)(_ns)?|os\.times")
_DURATION: Final = re.compile(r"\b(seconds|elapsed|took|spent|durations?)\b(?!=)")
_COUNT: Final = re.compile(r"\b(active_count\(|tracemalloc\.|listdir\('/proc)")
_PROGRAMS: Final = ("subprocess.run", "subprocess.check_call", "subprocess.check_output")
_WAITS: Final = ("communicate", "wait", "join")
_OWN_WAITS: Final = ("syncing", "Syncing()")
"""What waits for the disk and is dagkit's own: the test lets it continue."""


class Form(NamedTuple):
    """What is wrong, and what to do."""

    problem: str
    help: str


DURATION: Final = Form("an assertion about a duration", "count steps, or mark a trial; bench/ measures speed")
COUNT: Final = Form("an assertion about threads, processes or memory", "assert what they do, or mark a trial")
SLEEP: Final = Form("a test that sleeps", "wait for a condition, or say why: # sleeps: REASON")


def tests_depend_on_no_machine() -> Iterator[Breach]:
    for modules in MODULES:
        for path in sorted(ROOT.glob(modules)):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(OTHERS):
                yield from breaches_in(name, path.read_text(encoding="utf-8"))


def breaches_in(path: str, source: str) -> Iterator[Breach]:
    tree, lines = ast.parse(source), source.splitlines()
    if _is_trial(_marks_of_module(tree)):
        return
    clocks = _names_of_clocks(tree)
    for node in _outside_trials(tree):
        if isinstance(node, ast.Assert) and (form := _form_of_assertion(node.test, clocks)):
            yield Breach(path, node.lineno, *form)
        if isinstance(node, ast.Call) and (form := _form_of_call(node, lines[node.lineno - 1])):
            yield Breach(path, node.lineno, *form)


def _outside_trials(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """All statements and expressions but those in functions and classes that are marked `trial`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef) and _is_trial(child.decorator_list):
            continue
        if isinstance(child, ast.expr | ast.stmt):
            yield child
        yield from _outside_trials(child)


def _marks_of_module(tree: ast.Module) -> Iterator[ast.expr]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            yield from node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]


def _is_trial(marks: Iterator[ast.expr] | Sequence[ast.expr]) -> bool:
    return any(ast.unparse(mark).partition("(")[0] == "pytest.mark.trial" for mark in marks)


def _names_of_clocks(tree: ast.Module) -> set[str]:
    """Names of values that are computed from a clock, but for limits that `within` gives."""
    return {
        node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if _reads_clock(node.value) and "within" not in _names_in(node.value)
    }


def _reads_clock(value: ast.expr) -> bool:
    attributes = [node for node in ast.walk(value) if isinstance(node, ast.Attribute)]
    return any(one.attr.startswith("ru_") or _CLOCKS.fullmatch(ast.unparse(one)) for one in attributes)


def _names_in(value: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}


def _form_of_assertion(test: ast.expr, clocks: set[str]) -> Form | None:
    for compare in ast.walk(test):
        if not isinstance(compare, ast.Compare):
            continue
        sides = [compare.left, *compare.comparators]
        texts = [ast.unparse(side) for side in sides]
        if any(map(_COUNT.search, texts)):
            return COUNT
        is_bound = any(isinstance(side, ast.Constant) for side in sides) and any(
            isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in compare.ops
        )
        is_clock = any(_reads_clock(side) or clocks & _names_in(side) for side in sides)
        is_hang_guard = texts == ["time.monotonic()", "until"]
        if not is_hang_guard and (is_clock or (is_bound and any(map(_DURATION.search, texts)))):
            return DURATION
    return None


def _form_of_call(call: ast.Call, line: str) -> Form | None:
    name = ast.unparse(call.func)
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    is_limited = not {"timeout", None}.isdisjoint(keywords)
    port = keywords.get("port")
    if name == "time.sleep" and "# sleeps: " not in line:
        return SLEEP
    if "server" in name.lower() and isinstance(port, ast.Constant) and port.value != 0:
        return Form(f"the fixed port {port.value}", "bind to port 0, and ask for the port")
    if name in _PROGRAMS and not is_limited:
        return Form(f"{name} without a limit", "call run_program, of tests.processes, or pass timeout=within(SECONDS)")
    owner, _, method = name.rpartition(".")
    if method in _WAITS and owner and owner not in _OWN_WAITS and not call.args and not is_limited:
        return Form(f"{name}() without a limit", "pass within(SECONDS), of tests.patience")
    return None
