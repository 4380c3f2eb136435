"""The reference is an oracle: what it shares with the workers is written down, with what proves that instead."""

import re
from pathlib import Path

from tests.architecture.layers import imports_in, sources_under

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "docs/decisions/0030-the-reference-shares-only-what-is-named.md"
ROWS = re.findall(r"^\| (`dagkit.*?) \| (.*?) \| (.*?) \|$", RECORD.read_text(encoding="utf-8"), re.MULTILINE)
SOURCES = sources_under(ROOT)
ENGINE = "dagkit.engine."
OWN = "dagkit.backends.reference"


def shared():
    """The modules of the engine that the reference may import; of some only the names in brackets."""
    cells = (re.findall(r"`(dagkit[a-z_.]+)`(?: \(([^)]*)\))?", row[0]) for row in ROWS)
    return {module: set(re.findall(r"`(\w+)`", names)) for cell in cells for module, names in cell}


def imported():
    """The names that the reference imports from each module of the engine."""
    found: dict[str, set[str]] = {}
    for module, source in SOURCES.items():
        if module == OWN or module.startswith(f"{OWN}."):
            for each in imports_in(module, source, is_package=module == OWN):
                home, _, name = each.imported.rpartition(".")
                if home.startswith(ENGINE):
                    found.setdefault(home, set()).add(name)
    return found


def test_the_reference_imports_of_the_engine_what_the_record_names():
    assert imported().keys() == shared().keys()


def test_of_some_modules_it_imports_certain_names_alone():
    types = {"SavedState"}
    of_some = {module: names for module, names in shared().items() if names}
    assert of_some
    assert {module: imported()[module] - types for module in of_some} == of_some


def test_each_proof_that_the_record_names_is_there():
    named = [path for row in ROWS for path in re.findall(r"`(tests/[\w/.]+)`", row[2])]
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
