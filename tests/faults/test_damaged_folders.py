"""Whatever the files of an application's folder contain, each command ends with a code, without a traceback or a hang.

The gate tries four damages, and `make trials` ten times as many as `--trials`.
"""

import shutil
import traceback
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from dagkit.cli import main
from dagkit.launching import Machine
from tests.faults.applications import TRIED
from tests.patience import ended_within, within

ROOT = Path(__file__).parents[2]
EXIT_CODES = {*range(12)}
"""docs/cli.md lists them."""
WITHIN_SECONDS = within(60)
APPLICATION = str(ROOT / "apps" / "line_filter")
COMMANDS = [
    *(("ledger", *words) for words in (("verify", "state"), ("show", "state"), ("export", "state", "exported"))),
    ("ledger", "verify", "--complete", "--content", "state"),
    ("ledger", "gc", "state"),
    ("ledger", "gc", "state", "--repair", "--grace-minutes", "0"),
    ("ls", "."),
    *((word, "state") for word in ("status", "logs", "splits", "items")),
    *((word, verb, "state") for word, verb in (("scale", "explain"), ("files", "ls"), ("work", "ls"))),
    ("files", "explain", APPLICATION, "input/0.txt", "--path", "state"),
    ("launch", APPLICATION, "--once", "--reference", "--path", "state"),
]
WORDS = [
    b"null",
    b"{}",
    b"[]",
    b'""',
    b"-1",
    b"1e999",
    b"9" * 400,
    b"\xff",
    b"\0",
    b"..",
    b"../../x",
    b"[" * 3000,
    b"true",
]


def _cut(content: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(content) + 1)
    return content[:start] + content[start + chance.randrange(40) :]


def _replaced(content: bytes, chance: Random) -> bytes:
    """A value of a document is another one, or some bytes are."""
    start = max(0, content.find(b":", chance.randrange(len(content) + 1)) + 1)
    end = min((found for sign in b",}]" if (found := content.find(sign, start)) >= 0), default=start + 3)
    return content[:start] + chance.choice(WORDS) + content[end:]


def _flipped(content: bytes, chance: Random) -> bytes:
    place = chance.randrange(len(content) + 1)
    return content[:place] + chance.randbytes(1) + content[place + 1 :]


def _any(_: bytes, chance: Random) -> bytes:
    return chance.choice([b"", chance.randbytes(60), *WORDS])


def damage(folder: Path, chance: Random) -> str:
    """Change one file, remove it, or put something else in its place; return what was done."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if not files:
        return "nothing is left"
    file = chance.choice(files)
    what = chance.choice(
        [_cut, _replaced, _replaced, _flipped, _any, "removed", "a folder", "another file", "no folder"]
    )
    if callable(what):
        file.write_bytes(what(file.read_bytes(), chance))
        return f"{what.__name__} {file}"
    if what == "another file":
        shutil.copyfile(chance.choice(files), file.with_name("other"))
        file.with_name("other").replace(file)
    elif what == "no folder":
        shutil.rmtree(file.parent)
    else:
        file.unlink()
        if what == "a folder":
            file.mkdir()
    return f"{what} {file}"


@pytest.fixture
def launched(tmp_path, monkeypatch):
    """A folder with the application's folder after a launch, which a copy is made of for each damage."""
    (home := tmp_path / "launched").mkdir()
    monkeypatch.chdir(home)
    TRIED["line_filter"].write_input(Random(0))  # noqa: S311 - no secret
    TRIED["line_filter"].launch("state", Machine("reference"))
    return home


@pytest.mark.slow
@pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.trial)])
def test_commands_answer_whatever_the_files_contain(many, launched, tmp_path, monkeypatch, trials):
    """Run some commands in a copy of the folder for each seed, after one or two damages."""
    problems = []
    for number in range(10 * trials if many else 4):
        chance, folder = Random(number), tmp_path / str(number)  # noqa: S311 - no secret
        shutil.copytree(launched, folder)
        monkeypatch.chdir(folder)
        done = [damage(Path("state"), chance) for _ in range(chance.randint(1, 2))]
        for command in chance.sample(COMMANDS, 3):
            try:
                with ended_within(WITHIN_SECONDS):
                    answer = CliRunner().invoke(main, command)
            except TimeoutError as error:
                problems.append((number, done, command, str(error)))
                continue
            if not isinstance(answer.exception, SystemExit | None) or answer.exit_code not in EXIT_CODES:
                where = "".join(traceback.format_tb(answer.exc_info[2])[-2:]) if answer.exc_info else ""
                problems.append((number, done, command, f"{answer.exit_code} {answer.exception!r} {where}"))
            elif "Traceback" in answer.output:
                problems.append((number, done, command, answer.output[-1500:]))
        shutil.rmtree(folder)
    assert problems == [], "\n".join(map(str, problems))
