"""An installed dagkit runs the first pages without Java and `dot`, and takes extensions of other distributions."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.docs.fences import fences_in
from tests.packaging.building import ROOT, Place, run
from tests.patience import LONG_WINDOWS
from tests.processes import run_program

pytestmark = pytest.mark.slow
ACME = Path(__file__).parent / "acme"
"""A distribution with an operator, a command, a policy and an observer."""


@pytest.fixture
def bare(place, tmp_path):
    """A folder with the examples of the wheel, in an environment without Java and `dot`."""
    (examples,) = (place.folder / "venv" / "lib").glob("python*/site-packages/dagkit/examples")
    shutil.copytree(examples, tmp_path / "apps")
    return Place(place.python, tmp_path)


def typed(bare, line):
    """Type a line into a shell whose PATH has the commands of the environment only."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    environment = {**kept, "PATH": str(bare.python.parent), "HOME": str(bare.folder), "NO_COLOR": "1", "COLUMNS": "120"}
    environment |= LONG_WINDOWS
    return run_program(["/bin/sh", "-c", line], cwd=bare.folder, env=environment, check=False, seconds=600)


def shown(bare, fence):
    """A console fence as it reads when its commands are typed."""
    wanted = int(fence.info.rpartition(" ")[2]) if "exits" in fence.info else 0
    text = ""
    for line in (line[2:] for line in fence.text.splitlines() if line.startswith("$ ")):
        answer = typed(bare, line)
        assert answer.returncode == wanted, f"{line} ends with {answer.returncode}: {answer.stdout}{answer.stderr}"
        text += f"$ {line}\n{answer.stdout}{answer.stderr}"
    return text


@pytest.mark.gate(1)
def test_what_the_first_pages_show_happens(bare):
    fences = [*fences_in(ROOT / "README.md"), *fences_in(ROOT / "docs" / "first-look.md")]
    ran, imports = 0, ""
    for fence, following in zip(fences, (*fences[1:], None), strict=True):
        if fence.language == "console":
            assert shown(bare, fence) == fence.text
            ran += 1
        elif fence.info == "python":
            printed = bare.run("python", "-c", imports + fence.text)
            imports += "".join(f"{line}\n" for line in fence.text.splitlines() if line.startswith(("from ", "import ")))
            assert printed == (following.text if following and following.info == "text output" else "")
            ran += 1
        elif fence.file_name is not None:
            (bare.folder / fence.file_name).write_text(fence.text, encoding="utf-8")
    assert ran > 4


def test_one_command_after_the_installation_ingests_a_first_file_and_one_draws_it_without_dot(bare):
    command = "dagkit new words --launch"
    assert f"`{command}`" in (ROOT / "README.md").read_text(encoding="utf-8")
    answer = typed(bare, f"{command} && dagkit graph apps/word_count -o graph.svg")
    assert answer.returncode == 0, answer.stderr
    assert "Words: 1 window, 47 B read, 46 B written to 1 file" in answer.stdout
    (written,) = (bare.folder / "words" / "output").iterdir()
    assert written.read_text() == "a first line\na second line, after a blank one\n"
    assert (bare.folder / "graph.svg").read_text().startswith("<svg")


@pytest.fixture(scope="module")
def extended(place):
    """The environment with the distribution acme."""
    run([str(place.python), "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", str(ACME)], place.folder)
    return place


APPLICATION = """\
from dagkit import StreamingApplication
from dagkit_operators import Items, PartWriter

class Loud(StreamingApplication):
    def populate_dag(self, dag, conf):
        import acme_dagkit

        words = dag.add_operator("Words", Items[str](items=("a", "b")))
        words >> dag.add_operator("Shout", acme_dagkit.Shout()) >> dag.add_operator("Out", PartWriter(file_path="out"))
"""


def test_extensions_of_another_distribution_are_found(extended, tmp_path):
    place = Place(extended.python, tmp_path)
    (tmp_path / "loud.py").write_text(APPLICATION)
    assert "Shout" in place.run("dagkit", "describe")
    assert place.run("dagkit", "greet", "you") == "hello you\n"
    assert "greet" in place.run("dagkit", "--help")
    place.run("dagkit", "launch", "loud.py", "--once", "--reference", "-q", "--observer", "acme")
    assert (tmp_path / "out" / "part-00000-00000").read_text() == "A!\nB!\n"
    events = [json.loads(line) for line in (tmp_path / "acme.jsonl").read_text().splitlines()]
    assert "Committed" in events
    program = "from dagkit.scaling.policy import policy_names; print(policy_names())"
    assert "acme-one" in place.run("python", "-c", program)


WRONG = [
    ("dagkit launch loud.py --observer acmee", 2, "did you mean 'acme'?"),
    ("dagkit launch loud.py --observer mute", 2, "cannot be called"),
    ("dagkit gret", 2, "did you mean 'greet'?"),
    ("dagkit number", 1, "is no command of click"),
]


def test_what_no_distribution_brings_is_wrong_usage(extended, tmp_path):
    (tmp_path / "loud.py").write_text(APPLICATION)
    for line, code, problem in WRONG:
        wrong = typed(Place(extended.python, tmp_path), line)
        assert (wrong.returncode, problem in wrong.stderr) == (code, True), wrong.stderr
