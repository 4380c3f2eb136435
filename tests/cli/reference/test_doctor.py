"""`dagkit doctor`: each check, as it is found and as it fails."""

import json
import os
import platform
import pty
import select
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import pytest

import dagkit as installed
from dagkit.backends.spark.session.java import JavaNotFound
from dagkit.cli.application.anatomy import anatomy_of
from dagkit.cli.application.operator_lookup import libraries
from dagkit.cli.group import ALIASES
from dagkit.cli.reference import doctor
from dagkit.ledger import Ledger
from dagkit.ledger.stores import LocalStore
from dagkit_operators.native import compiled
from tests.cases import cases
from tests.patience import within
from tests.processes import run_program

CHECKS = ["versions", "versions", "compiled C", "Java", "storage", "clock"]
CHECKS += ["space for applications", "space for temporary files", "workers' Python"]


def findings(answer):
    listed = answer.document["findings"]
    return {each["check"]: (each["ok"], each["found"], each["help"]) for each in listed}


def test_every_check_is_reported_and_nothing_is_left_behind_also_on_the_way_to_a_place_that_does_not_exist(
    dagkit, folder
):
    answer = dagkit("doctor", "--json")
    assert [each["check"] for each in answer.document["findings"]] == CHECKS
    assert findings(answer)["storage"][0]
    assert list(folder.iterdir()) == []
    (folder / "there").mkdir()
    found = findings(dagkit("doctor", "--path", "there/not/yet", "--json"))["storage"]
    assert (found[0], found[1].partition(":")[0]) == (True, "there/not/yet (not there yet)")
    assert [path.name for path in folder.rglob("*")] == ["there"]


def test_the_folder_of_an_application_is_checked(dagkit, word_count, folder):
    answer = dagkit("doctor", word_count, "-D", f"dt.attr.APPLICATION_PATH={folder}/elsewhere", "--json")
    assert findings(answer)["storage"][1].startswith(f"{folder}/elsewhere (not there yet): creates exclusively")
    dagkit("doctor", "--spark", "spark.executor.memory=1g").fails(2, "--spark needs --master")


def test_a_master_that_does_not_answer_is_a_finding():
    """In a process of its own: that of the tests may have a session."""
    command = [sys.executable, "-m", "dagkit.cli", "doctor", "--json", "--master", "spark://master.invalid:7077"]
    answer = run_program(command, check=False)
    assert answer.returncode == 5
    ((ok, found, help_),) = [
        (each["ok"], each["found"], each["help"])
        for each in json.loads(answer.stdout)["findings"]
        if each["check"] == "Spark"
    ]
    assert (ok, found) == (False, "no Spark at spark://master.invalid:7077: there is no host 'master.invalid'")
    assert help_.startswith("check the host and the port")


def test_a_failed_check_says_what_to_do_and_has_an_exit_code(dagkit, monkeypatch):
    def missing():
        raise JavaNotFound("Spark needs Java, and none was found", "install Java 17")

    monkeypatch.setattr(doctor, "ensure_java", missing)
    answer = dagkit("doctor")
    shown = [part in answer.out for part in ("FAIL  Spark needs Java, and none was found\n", "help: install Java 17\n")]
    assert (answer.code, shown) == (5, [True, True])


def test_another_python_of_workers_fails(folder, write, monkeypatch):
    other = write("python", "#!/bin/sh\necho 2.7\n")
    other.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    found = doctor.workers_python()
    problem = f"Spark's workers run {other}, which is Python 2.7"
    assert (found.ok, found.found.partition(", but")[0]) == (False, problem)
    monkeypatch.setenv("PYSPARK_PYTHON", str(folder / "none"))
    assert not doctor.workers_python().ok


def test_a_folder_that_is_made_for_a_check_stays_if_another_process_uses_it(folder):
    findings = doctor.storage("app")
    next(findings)
    (folder / "app" / "ledger").mkdir()
    assert [finding.ok for finding in findings] == [True]
    assert (folder / "app" / "ledger").is_dir()


def test_a_store_that_is_not_exclusive_a_folder_that_cannot_be_made_another_clock_and_little_space_fail(
    folder, monkeypatch, write
):
    monkeypatch.setattr(LocalStore, "create", LocalStore.replace)
    (exclusive, _) = doctor.storage("app")
    assert (exclusive.ok, exclusive.found) == (False, "app (not there yet): two writers can both create a file")
    write("file", "a file")
    (refused,) = doctor.storage("file/app")
    assert (refused.ok, bool(refused.help)) == (False, True)
    monkeypatch.setattr(LocalStore, "modified", lambda *_: datetime.now(UTC) + timedelta(seconds=90))
    _, clock = doctor.storage("app")
    assert (clock.ok, clock.found.startswith(("89.", "90."))) == (False, True)
    monkeypatch.setattr(doctor, "LEAST_SPACE", 1 << 62)
    assert not doctor.space("applications", folder / "not" / "made").ok


_SECONDS = within(60)
_TO_START, _TO_END = b"\x01", b"\x05"
"""The keys for the start and the end of the line."""


class Shell:
    """An interactive bash with the completion of dagkit."""

    def __init__(self, terminal):
        self._terminal = terminal
        self._printed = b""
        for line in ("bind 'set bell-style none' 'set enable-bracketed-paste off'", 'eval "$(dagkit completion bash)"'):
            os.write(terminal, line.encode() + b"\n")

    def completed(self, begun):
        """The line after the Tab key."""
        # the quotes within the words keep them out of the echo of what is typed
        os.write(self._terminal, begun.encode() + b"\t" + _TO_START + b"echo 'beg''in' " + _TO_END + b" 'en''d'\n")
        until = time.monotonic() + _SECONDS
        while b" end\r\n" not in self._printed:
            assert select.select([self._terminal], [], [], max(0.0, until - time.monotonic()))[0], self._printed
            self._printed += os.read(self._terminal, 65536)
        shown, _, self._printed = self._printed.partition(b" end\r\n")
        return shown.rpartition(b"begin ")[2].decode()


@pytest.fixture
def shell(folder):
    """A bash in the folder; the command is that of the Python that runs the tests."""
    bash = shutil.which("bash")
    assert bash is not None, "the tests need bash"
    ours, theirs = pty.openpty()
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": search, "HOME": str(folder), "TERM": "dumb", "PS1": "", "HISTFILE": ""}
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    command = [bash, "--norc", "--noprofile", "-i"]  # a shell without files of the user
    with subprocess.Popen(command, cwd=folder, env=own, start_new_session=True, **streams) as process:  # noqa: S603
        os.close(theirs)
        try:
            yield Shell(ours)
        finally:
            process.kill()
            os.close(ours)


COMPLETED = {
    "valid": "validate",
    "launch --metrics-p": "launch --metrics-port",
    "ledger veri": "ledger verify",
    "launch --log js": "launch --log json",
    "status Line": "status .dagkit/LineFilter",
    "status ": "status .dagkit/LineFilter",
    "items .dagkit/L": "items .dagkit/LineFilter",
    "launch wor": "launch word_count.py",
    "status wor": "status word_count.py",
}


@pytest.mark.slow
def test_commands_options_launched_applications_and_files_are_completed(shell, folder, write):
    Ledger.create(folder / ".dagkit" / "LineFilter")
    (folder / ".dagkit" / "LineNothing").mkdir()
    write("word_count.py", "")
    assert {begun: shell.completed(f"dagkit {begun}").removeprefix("dagkit ") for begun in COMPLETED} == COMPLETED


@pytest.fixture
def install(write, folder, monkeypatch):
    """Installs a library of operators that is this text."""

    def install(source):
        write("library/__init__.py", source)
        write("library-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: library\nVersion: 1.0\n")
        write("library-1.0.dist-info/entry_points.txt", "[dagkit.operators]\nlibrary = library\n")
        monkeypatch.syspath_prepend(folder)

    yield install
    sys.modules.pop("library", None)


def test_the_version_comes_first_and_what_it_runs_on_behind_it(dagkit):
    first, second, *_ = dagkit("--version").out.splitlines()
    assert first == f"dagkit {installed.__version__}"
    runs_on = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in ("pyspark", "pyarrow"))]
    assert second == ", ".join(runs_on)


@pytest.mark.parametrize(
    ("found", "scanner"),
    [
        pytest.param(None, "numpy (this version has no compiled C)", id="nothing was compiled"),
        pytest.param(compiled.Compiled("libbytewise.so", len, len), "compiled C", id="all was compiled"),
        (compiled.Compiled("libbytewise.so", None, len), "compiled C, for lines numpy"),
    ],
)
def test_the_version_names_what_scans_bytes(dagkit, monkeypatch, found, scanner):
    monkeypatch.setattr(compiled, "compiled", lambda: found)
    assert dagkit("--version").out.splitlines()[2] == f"dagkit_operators: byte scanning: {scanner}"


@cases(
    "source, lines",
    ("returns text", "def about():\n    return 'of today'", ["of today"]),
    ("has no function", "length = 3", []),
    ("has another attribute", "about = 3", []),
    ("lacks a module", "import no_such_module", ["ModuleNotFoundError: No module named 'no_such_module'"]),
    ("fails", "def about():\n    raise ValueError('not today')", ["ValueError: not today"]),
)
def test_every_library_may_add_a_line_about_itself(dagkit, install, source, lines):
    install(source)
    assert dagkit("--version").out.splitlines()[3:] == [f"library: {line}" for line in lines]


OPERATORS = [pytest.param(each, id=name) for library in libraries() for name, each in library.operators.items()]


@pytest.mark.gate(50)
@pytest.mark.parametrize("operator", OPERATORS)
def test_properties_that_must_be_set_come_first_and_those_of_scaling_last(operator):
    top = [each for each in anatomy_of(operator).properties if "." not in each.name]
    required = [each.required for each in top]
    assert required == sorted(required, reverse=True)
    names = [each.name for each in top]
    if "min_readers" in names:
        assert names[names.index("policy") :][:3] == ["policy", "policy_settings", "min_readers"]
        assert names[-1] == "apex_compat"


def test_the_first_property_of_a_reader_of_kafka_is_that_of_its_brokers():
    (reader,) = (library.operators["KafkaReader"] for library in libraries() if "KafkaReader" in library.operators)
    assert [each.name for each in anatomy_of(reader).properties][:2] == ["bootstrap_servers", "parse"]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (("files", "word_count.py"), ("files", "ls", "word_count.py")),
        (("work", "word_count.py"), ("work", "ls", "word_count.py")),
        (("scale", "nowhere"), ("scale", "explain", "nowhere")),
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.usefixtures("word_count")
def test_a_group_without_a_command_calls_the_usual_one(dagkit, short, long):
    assert dagkit(*short) == dagkit(*long)


def test_a_misspelt_command_of_a_group_is_not_taken_for_an_application(dagkit):
    dagkit("files", "list", "app.py").fails(2, "Did you mean 'ls'")


@pytest.mark.parametrize("arguments", [(), ("launch",), ("files", "ls")], ids=" ".join)
def test_help_is_a_command_too(dagkit, arguments):
    assert dagkit("help", *arguments) == dagkit(*arguments, "--help")


def test_to_start_is_to_launch_and_not_to_restart():
    assert ALIASES["start"] == "launch"
