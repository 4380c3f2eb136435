"""What is only given to an operator, as a function: no class of the application refers to this module."""

from limits import LONGEST  # beside this file


def is_heard(word: str) -> bool:
    return len(word) <= LONGEST.letters
