"""A warm driver and the launches that are handed over to it, without Spark: `keep` stands where Java would be kept."""

import os
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from typing import Any

import pytest

from dagkit.runs.warm.place import socket_path
from tests.patience import PATIENT, within
from tests.processes import await_end, next_line

pytestmark = pytest.mark.slow

DRIVER = """
import os, sys
import imported_by_the_driver
from dagkit.runs.machine import Machine
from dagkit.runs.warm.place import receive, send
from dagkit.runs.warm.warm_driver import WarmDriver

def keep(connection):
    send(connection, {"java": os.getpid()})
    try:
        while True:
            receive(connection)
            send(connection, {})
    except EOFError:
        pass

def run(java, arguments, program):
    sys.java = java
    exec(arguments[0], {"__name__": "launched"})

WarmDriver(Machine(), keep, run, float(sys.argv[1])).serve(lambda status: print(status["process"], flush=True))
"""

CLIENT = """
import sys
from dagkit.runs.machine import Machine
from dagkit.runs.warm.handing_over import Declined, hand_over

ended = hand_over(Machine(cores=int(sys.argv[2]) if len(sys.argv) > 2 else None), "dagkit")
if isinstance(ended, Declined):
    sys.exit(f"declined: {ended.reason}")
sys.exit(ended)
"""

NO_ANSWER = """
from dagkit.runs.warm.place import receive
from dagkit.runs.warm.place import listening

with listening() as (listener, _):
    print("listens", flush=True)
    with listener.accept()[0] as connection:
        receive(connection)
        print("asked", flush=True)
        input()
"""

WITHIN = within(30)


@dataclass
class Folder:
    """A working directory with a warm driver and with launches."""

    path: Path
    runtime: str
    started: list["Popen[str]"] = field(default_factory=list)

    def driver(self, idle_seconds: float = 600) -> "Popen[str]":
        """A warm driver that is ready."""
        process = self.process("driver.py", str(idle_seconds))
        assert next_line(process) == f"{process.pid}\n", process.communicate(timeout=within(30))[1]
        return process

    def launch(self, code: str, *more: str, **options: Any) -> "Popen[str]":
        """A launch, which runs this code in the warm driver, and inherits the `passed` files."""
        return self.process("client.py", code, *more, **options)

    def answer(self, code: str, *more: str, **options: Any) -> tuple[int, str, str]:
        return answered(self.launch(code, *more, **options))

    def process(self, *arguments: str, passed: tuple[int, ...] = (), **environment: str) -> "Popen[str]":
        variables = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": self.runtime, **PATIENT, **environment}
        pipes = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE, "text": True, "pass_fds": passed}
        process = Popen([sys.executable, *arguments], cwd=self.path, env=variables, **pipes)  # noqa: S603 - ours
        self.started.append(process)
        return process


def answered(process: "Popen[str]", given: str = "") -> tuple[int, str, str]:
    out, err = process.communicate(given, timeout=WITHIN)
    return process.returncode, out, err


def first_line(process: "Popen[str]") -> str:
    return next_line(process).rstrip("\n")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "imported_by_the_driver.py").write_text("")
    with tempfile.TemporaryDirectory() as runtime:
        made = Folder(tmp_path, runtime)
        try:
            yield made
        finally:  # a killed driver ends Java, and a killed launch its process
            for process in made.started:
                process.kill()
                process.communicate(timeout=within(30))


@pytest.fixture
def launch(folder):
    folder.driver()
    return folder.launch


def test_a_launch_has_the_streams_arguments_and_environment_of_its_caller(launch, tmp_path):
    code = "import os, sys; print(input(), sys.argv[0], os.getcwd(), os.environ['OLDPWD'])"
    asked = launch(f"{code}; print('e', file=sys.stderr); sys.exit(7)", OLDPWD="x")
    assert answered(asked, "typed\n") == (7, f"typed client.py {tmp_path} x\n", "e\n")


def test_a_launch_begins_afresh_and_imports_edited_code(launch, tmp_path):
    code = "import sys, edited; print(hasattr(sys, 'left'), edited.VALUE, hasattr(sys, 'java')); sys.left = 1"
    for value in ("first", "second"):
        (tmp_path / "edited.py").write_text(f"VALUE = '{value}'")
        assert answered(launch(code)) == (0, f"False {value} True\n", "")


@pytest.mark.trial
def test_a_launch_ends_as_a_process_of_python_does(launch):
    failed = answered(launch("raise ValueError('no')"))
    assert (failed[0], failed[2].splitlines()[-1]) == (1, "ValueError: no")
    assert answered(launch("import sys; sys.exit('text')")) == (1, "", "text\n")
    late = "import atexit, threading; atexit.register(print, 'exit'); threading.Timer(0.05, print, ['thread']).start()"
    assert answered(launch(late)) == (0, "thread\nexit\n", "")


WAITS = """
import sys

try:
    print("waits", flush=True)
    input()
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, -signal.SIGTERM, marks=pytest.mark.trial)]
)
def test_signals_reach_the_launch(number, code, launch):
    # With this, a system call never ends by a signal, as if each came right before the system call.
    waiting = launch(f"import signal\nsignal.siginterrupt({int(number)}, False)\n{WAITS}")
    assert first_line(waiting) == "waits"
    waiting.send_signal(number)
    assert waiting.wait(WITHIN) == code


RESUMING = """
import signal

set_handler = signal.signal

def resuming(number, handler):
    before = set_handler(number, handler)
    signal.siginterrupt(number, False)
    return before

signal.signal = resuming
"""
"""With this, a system call never ends by a signal."""


def test_a_signal_right_before_a_launch_is_waited_for_reaches_it(folder):
    (folder.path / "client.py").write_text(f"{RESUMING}\n{CLIENT}")
    folder.driver()
    waiting = folder.launch(WAITS)
    assert first_line(waiting) == "waits"
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(WITHIN) == 130


def test_a_killed_launch_ends_its_caller_although_it_left_a_process_behind(folder):
    folder.driver()
    leaves = "import os, sys\nif not os.fork(): sys.stdin.read()\nprint(os.getpid(), flush=True); sys.stdin.read()"
    killed = folder.launch(leaves)
    os.kill(int(first_line(killed)), signal.SIGKILL)
    assert killed.wait(WITHIN) == -signal.SIGKILL


def test_a_launch_ends_with_its_caller_and_its_caller_with_it(folder):
    folder.driver()
    waits = "import os, sys; print(os.getpid(), sys.java, flush=True); input()"
    killed = folder.launch(waits)
    process, java = map(int, first_line(killed).split())
    killed.kill()
    await_end(process)
    await_end(java)  # after a launch that was killed, another Java starts
    other = folder.launch(waits)
    while not (line := first_line(other)):  # that Java is not ready yet
        assert "Spark is starting" in answered(other)[2]
        other = folder.launch(waits)
    process, later = map(int, line.split())
    assert later != java
    os.kill(process, signal.SIGKILL)
    assert answered(other)[0] == -signal.SIGKILL


def test_a_java_that_cannot_be_tidied_is_replaced(folder):
    hurries = "from dagkit.runs.warm import keeper\nkeeper._TIDIED_WITHIN_SECONDS = 0.1\n"
    (folder.path / "driver.py").write_text(hurries + DRIVER.replace("            send(connection, {})\n", ""))
    folder.driver()
    java = int(folder.answer("import sys; print(sys.java)")[1])
    await_end(java)
    while (again := folder.answer("import sys; print(sys.java)"))[0]:
        assert "Spark is starting" in again[2]
    assert int(again[1]) != java


def test_a_driver_ends_although_java_does_not(folder):
    hurries = "from dagkit.runs.warm import keeper\nkeeper._ENDED_WITHIN_SECONDS = 0.1\n"
    (folder.path / "driver.py").write_text(hurries + DRIVER.replace("        pass", "        os.read(os.pipe()[0], 1)"))
    driver = folder.driver()
    driver.terminate()
    assert driver.wait(WITHIN) == 0


def test_a_launch_survives_the_end_of_the_driver_and_java_does_not(folder):
    driver = folder.driver()
    running = folder.launch("import sys; print(sys.java, flush=True); sys.exit(len(input()))")
    java = int(first_line(running))
    driver.kill()
    await_end(java)
    assert folder.answer("print(1)")[2] == "declined: None\n"
    assert answered(running, "five\n")[0] == 4
    folder.driver()
    assert folder.answer("print(1)") == (0, "1\n", "")


def test_a_second_launch_at_the_same_time_is_declined_and_one_after_the_other_is_not(folder):
    driver = folder.driver()
    running = folder.launch("print('runs', flush=True); input()")
    assert first_line(running) == "runs"
    assert folder.answer("print(1)")[2] == "declined: it runs another launch\n"
    assert answered(running, "\n")[0] == 0
    for _ in range(3):
        assert folder.answer("print(1)") == (0, "1\n", "")
    assert folder.answer("print(1)", "1")[2] == "declined: it has another master\n"
    again = answered(folder.process("driver.py", "600"))
    assert "a warm driver serves this directory" in again[2]
    driver.terminate()
    assert driver.wait(WITHIN) == 0


SLOW = DRIVER.replace('send(connection, {"java"', 'open("go").read(); send(connection, {"java"')
"""Its Java is ready once something is written into the pipe `go`."""

ASK = """
import sys
from dagkit.runs.warm.handing_over import asked

while (answer := asked(sys.argv[1])) is None:
    pass
print(answer["state"])
"""


@pytest.mark.trial
@pytest.mark.parametrize("question", ["status", "stop"])
def test_a_driver_whose_java_starts_answers_and_can_be_stopped(folder, question):
    (folder.path / "driver.py").write_text(SLOW)
    os.mkfifo(folder.path / "go")
    driver = folder.process("driver.py", "600")
    answer = answered(folder.process("-c", ASK, question))
    if question == "status":
        assert folder.answer("print(1)")[2] == "declined: its Spark is starting\n"
    (folder.path / "go").write_text("")
    if question == "status":
        assert first_line(driver) == str(driver.pid)
        driver.terminate()
    assert answer == (0, "starting\n" if question == "status" else "ending\n", "")
    assert driver.wait(WITHIN) == 0


@pytest.mark.trial
def test_a_lock_that_cannot_be_made_is_named(folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    lock = socket_path({"XDG_RUNTIME_DIR": folder.runtime}).with_suffix(".lock")
    lock.mkdir(parents=True)
    lock.parent.chmod(0o700)
    assert f"ServeFailed: {lock} cannot be made: Is a directory" in answered(folder.process("driver.py", "600"))[2]


@pytest.mark.trial
def test_a_driver_ends_after_its_launch_and_when_nothing_is_launched(folder):
    driver = folder.driver()
    running = folder.launch("import sys; print(sys.java, flush=True); print(input())")
    java = int(first_line(running))
    driver.terminate()
    assert answered(running, "typed\n") == (0, "typed\n", "")
    assert driver.wait(WITHIN) == 0
    assert not Path(f"/proc/{java}").exists(), "the driver has waited for the end of Java"
    assert folder.driver(idle_seconds=0.1).wait(WITHIN) == 0


def test_a_driver_whose_code_has_changed_ends(folder):
    driver = folder.driver()
    os.utime(folder.path / "imported_by_the_driver.py", (1, 1))
    assert "has changed since it started" in folder.answer("print(1)")[2]
    assert driver.wait(WITHIN) == 0


@pytest.mark.trial
@pytest.mark.parametrize(
    "sent",
    [b"", b"\0\0", b"\0\0\0\x04{{}}", b"\0\0\0\x02[]", b'\0\0\0\x11{"ask": "launch"}', b"\0\0\0\x02{}"],
    ids=["nothing", "a part", "no JSON", "a list", "a launch of another version", "no question"],
)
def test_a_driver_survives_a_message_that_it_does_not_understand(folder, sent):
    folder.driver()
    (place,) = Path(folder.runtime).rglob("*.sock")
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(place))
        asking.sendall(sent)
        asking.shutdown(socket.SHUT_WR)
        asking.recv(1)  # until it has answered or closed the connection
    assert folder.answer("print(1)") == (0, "1\n", "")


@pytest.mark.trial
def test_an_interrupt_before_the_driver_has_answered_ends_the_caller(folder):
    patient = "from dagkit.runs.warm import handing_over\nhanding_over._ANSWERS_WITHIN_SECONDS = 600\n"
    # a run of the tests in the background of a shell ignores interrupts, and so would its child
    patient += "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    (folder.path / "client.py").write_text(patient + CLIENT)
    answers_late = folder.process("-c", NO_ANSWER)
    assert first_line(answers_late) == "listens"
    waiting = folder.launch("print(1)")
    assert first_line(answers_late) == "asked"
    for _ in range(3):  # one that arrives right before the process begins to wait ends it after the waiting only
        waiting.send_signal(signal.SIGINT)
        with suppress(TimeoutExpired):
            assert waiting.wait(WITHIN / 3) == -signal.SIGINT
            break
    assert waiting.returncode == -signal.SIGINT
    assert answered(answers_late, "\n")[0] == 0


@pytest.mark.trial
def test_a_launch_has_the_open_files_that_its_caller_inherited(folder):
    folder.driver()
    with tempfile.TemporaryFile("w+") as fourth, tempfile.TemporaryFile("w+") as fifth:
        fourth.write("one")
        fifth.write("two")
        for file in (fourth, fifth):
            file.flush()
        passed = (fourth.fileno(), fifth.fileno())
        code = f"import os; print(*[os.pread(file, 9, 0).decode() for file in {passed}])"
        assert folder.answer(code, passed=passed) == (0, "one two\n", "")
