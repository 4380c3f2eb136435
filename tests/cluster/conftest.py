"""The text that applications on clusters read."""

import random

import pytest

from tests.old_files import aged


@pytest.fixture
def text(tmp_path):
    """Some ten blocks of lines, a third of which begin with a dot."""
    chance = random.Random(21)  # noqa: S311 - no secret
    lines = (f"{chance.choice(['', '', '.'])}{chance.randrange(50)} words {number}\n" for number in range(900))
    (path := tmp_path / "lines.txt").write_text("".join(lines))
    return aged(path)
