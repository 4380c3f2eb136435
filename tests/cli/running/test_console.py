"""`dagkit console` and `dagkit launch --console` print the address of a page that answers."""

import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from dagkit.cli.running.console import _until_interrupted
from dagkit.console.serving import FolderOfApplications
from tests.cli.conftest import ROOT
from tests.patience import ended_within, within
from tests.processes import limited, next_line

ADDRESS = re.compile(r"console: (http://127\.0\.0\.1:\d+/\?token=[\w-]{43})$", re.MULTILINE)


@pytest.fixture
def ran(dagkit, word_count, write):
    """The folder of an application that ran."""
    write("input/a.txt", "one two two\n")
    assert dagkit("launch", word_count, "--once", "--reference", "--path", "run").code == 0
    return "run"


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_console_of_a_folder_answers_until_it_is_interrupted(ran, folder, number):
    """Also where it was started with interrupts ignored, as a shell starts programs in the background."""
    command = [sys.executable, "-W", "error", "-m", "dagkit.cli", "console", ran]
    path = f"{ROOT}:{ROOT / 'operators'}"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    console = subprocess.Popen(  # noqa: S603 - this very Python
        command, cwd=folder, env={"PYTHONPATH": path, "HOME": str(folder)}, stdout=subprocess.PIPE, text=True
    )
    signal.signal(signal.SIGINT, before)
    with limited(console, 50):
        try:
            (address,) = ADDRESS.findall(next_line(console))
            with urlopen(address) as page:  # noqa: S310 - our own server
                assert b"<title>dagkit console</title>" in page.read()
            console.send_signal(number)
            assert console.wait(timeout=within(30)) == 0
        finally:
            console.kill()


def test_a_signal_right_before_the_console_waits_for_one_ends_it(monkeypatch):
    set_handler = signal.signal
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def resuming(number: signal.Signals, handler: Any) -> None:
        """Set a handler of a signal that ends no system call, as if it came right before."""
        set_handler(number, handler)
        signal.siginterrupt(number, False)

    sending = threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    with ended_within(within(10)), monkeypatch.context() as patched:
        patched.setattr(signal, "signal", resuming)
        sending.start()
        _until_interrupted()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_without_a_ledger_and_with_wrong_options_there_is_no_console(dagkit, word_count):
    folder = "give the folder that it runs in, which holds a ledger"
    dagkit("console", "nowhere").fails(6, "application-missing", folder)
    dagkit("console", word_count).fails(6, "chain-missing")
    for wrong in ("--console=70000", "--console=x", "--allow-control"):
        assert dagkit("launch", wrong, word_count).code == 2


@pytest.mark.parametrize("given", [[], [".dagkit"]])
def test_without_an_application_the_console_is_of_all_that_were_launched_here(dagkit, word_count, monkeypatch, given):
    for name in ("One", "Two"):
        dagkit("launch", word_count, "--once", "--reference", "--path", f".dagkit/{name}")
    monkeypatch.setattr("dagkit.cli.running.console._until_interrupted", lambda: None)
    served = []
    whole = "dagkit.cli.running.console.FolderOfApplications"
    monkeypatch.setattr(whole, lambda place: served.append(place) or FolderOfApplications(place))
    assert ADDRESS.search(dagkit("console", *given).out)
    assert [Path(place).name for place in served] == [".dagkit"]


def test_a_launch_with_a_console_prints_its_address(dagkit, word_count):
    launched = dagkit("launch", "--console", word_count, "--once", "--reference")
    assert (launched.code, bool(ADDRESS.search(launched.err))) == (0, True)


def test_a_taken_port_is_one_sentence_before_anything_runs(dagkit, ran, word_count):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = dagkit("launch", word_count, "--reference", f"--console={taken.getsockname()[1]}")
    assert refused.code == 5
    assert "the console cannot be served at 127.0.0.1" in refused.err
    assert "address-taken" in refused.err
