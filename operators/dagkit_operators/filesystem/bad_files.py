"""Files that cannot be read because of what they are, whatever their filesystem does."""

import errno

from dagkit.errors import InputUnreadable, RunFailure

_OF_FILES = (PermissionError, FileNotFoundError, IsADirectoryError, NotADirectoryError)
_NUMBERS_OF_FILES = (errno.EIO, errno.ELOOP, errno.ENAMETOOLONG)
"""Further errors of the system that concern one file: others, as those of connections, concern many."""


class BadFile(RunFailure):
    """The content of a file cannot be read. Each subclass has its own code."""


def is_bad_file(error: Exception) -> bool:
    """Whether a file is the cause of an error, and not its filesystem or a connection to it."""
    if isinstance(error, InputUnreadable):
        return error.__cause__ is None or is_of_file(error.__cause__)
    return isinstance(error, BadFile)


def is_of_file(error: BaseException) -> bool:
    """Whether an error of the system concerns one file or folder."""
    return isinstance(error, _OF_FILES) or (isinstance(error, OSError) and error.errno in _NUMBERS_OF_FILES)
