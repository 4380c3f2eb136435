"""What is only given to an operator, as a function: no class of the application refers to this module."""

from limits import LONGEST  # type: ignore[import-not-found] # beside this file


def is_heard(word: str) -> bool:
    """Whether a listener hears the word."""
    return len(word) <= LONGEST.letters
