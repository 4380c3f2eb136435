"""Paths that arrive on a port: what can be no file is missing, and a folder is reported."""

import logging

import pytest

from dagkit.errors import InputUnreadable
from dagkit.testing import Alone
from dagkit_operators import FileInfo, FileSplitterBase


@pytest.mark.parametrize("path", ["a\0b", "", "x" * 300])
def test_what_can_be_no_file_is_missing(path):
    splitter = Alone(FileSplitterBase(on_missing="send"))
    splitter.work(FileInfo(path))
    assert splitter.sent("missing") == [FileInfo(path)]
    with pytest.raises(InputUnreadable, match="there is no such file or directory"):
        Alone(FileSplitterBase()).work(FileInfo(path))


def test_a_folder_is_reported(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        Alone(FileSplitterBase()).work(FileInfo(str(tmp_path)))
    assert f"{tmp_path} is a folder, and nothing of it is read: find the files in it by MatchFiles" in caplog.text
