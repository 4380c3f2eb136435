"""Messages on the socket of a warm driver, and the folder that holds it."""

import os
import socket
import sys
import tempfile
import threading
from typing import Any

import pytest

from dagkit.runs.machine import Machine
from dagkit.runs.warm.circumstances import Circumstances
from dagkit.runs.warm.handing_over import Declined, connected, hand_over
from dagkit.runs.warm.place import (
    ServeFailed,
    is_of_this_user,
    listening,
    log_path,
    open_log,
    private_folder,
    receive,
    send,
    socket_path,
)
from tests.patience import join
from tests.processes import run_program


def test_a_message_arrives_with_its_open_files(tmp_path):
    here, there = socket.socketpair()
    (tmp_path / "a").write_text("in the file")
    with here, there, (tmp_path / "a").open() as file:
        long = {"long": "ü\udc80" * 20_000}
        sending = threading.Thread(target=send, args=(here, long, [file.fileno()]))  # longer than a socket's buffer
        sending.start()
        message, files = receive(there)
        join(sending)
        with os.fdopen(files[0]) as passed:
            assert (message, passed.read()) == (long, "in the file")


def test_a_message_that_was_cut_off_is_an_error_and_its_files_are_closed():
    here, there = socket.socketpair()
    reading, writing = os.pipe()
    with there:
        socket.send_fds(here, [b"\0\0\0\x09{}"], [writing])
        os.close(writing)
        here.close()
        with pytest.raises(EOFError):
            receive(there)
        os.set_blocking(reading, False)  # it would wait if the passed end were open
        assert os.read(reading, 1) == b""
    os.close(reading)


def test_the_user_of_the_process_at_the_other_end_is_known(monkeypatch):
    here, there = socket.socketpair()
    with here, there:
        assert is_of_this_user(here)
        monkeypatch.setattr(os, "getuid", lambda: 987_654)
        assert not is_of_this_user(here)


def test_a_folder_that_others_can_reach_is_neither_used_nor_made_the_place_of_a_socket(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/tmp" if len(str(tmp_path)) > 60 else str(tmp_path))  # noqa: S108
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: 987_654)  # another user
    folder = socket_path().parent
    folder.mkdir()
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(socket_path()))
            listener.listen()
            assert connected() is None
        with pytest.raises(ServeFailed, match="others can reach"):
            private_folder()
    finally:
        socket_path().unlink()
        folder.rmdir()


def test_without_a_warm_driver_nothing_is_handed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert hand_over(Machine(), "dagkit") == Declined(None)


def test_a_path_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("long" * 30)))
    with pytest.raises(ServeFailed, match="too long"):
        private_folder()


def test_what_differs_is_named(tmp_path, monkeypatch):
    here = Circumstances.here(Machine())

    def difference(**machine: Any) -> str | None:
        return here.difference(Circumstances.here(Machine(**machine)))

    assert difference() is None
    assert difference(cores=1) == "another master"
    assert difference(settings={"spark.a": "b"}) == "other settings of Spark"
    monkeypatch.setenv("OLDPWD", "elsewhere")
    assert difference() is None
    monkeypatch.setenv("AWS_PROFILE", "another")
    assert difference() == "another value of the environment variable AWS_PROFILE"
    monkeypatch.chdir(tmp_path)
    assert difference() == "another working directory"


def test_the_mask_of_new_files_is_a_circumstance():
    code = (
        "import os; os.umask({}); from dagkit.runs.machine import Machine\n"
        "from dagkit.runs.warm.circumstances import Circumstances\n"
        "print(Circumstances.here(Machine()).settings['umask'])"
    )
    assert [run_program([sys.executable, "-c", code.format(mask)]).stdout for mask in (0o22, 0o77)] == ["18\n", "63\n"]


def test_a_second_warm_driver_does_not_empty_the_log_of_the_first(tmp_path, monkeypatch):
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        with listening():
            log_path().write_text("of the first\n")
            os.close(open_log())
            with pytest.raises(ServeFailed, match="a warm driver serves this directory"), listening():
                pass
            assert log_path().read_text() == "of the first\n"
        with listening():
            assert log_path().read_text() == ""
