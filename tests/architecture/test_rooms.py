"""The rooms in `docs/architecture.md` are the rooms of the code."""

from collections import Counter
from pathlib import Path

import pytest

from tests.architecture.layers import floor_of, layers_in, room_breaches, sources_under

ROOT = Path(__file__).parents[2]
ROOMS = layers_in((ROOT / "docs/architecture.md").read_text(encoding="utf-8"), "rooms")
SOURCES = sources_under(ROOT)
DIVIDED = (
    "dagkit.engine.",
    "dagkit.backends.spark.",
    "dagkit.conf.",
    "dagkit.cli.",
    "dagkit.ledger.",
    "dagkit_operators.",
)


def names_of(module):
    return module.rpartition(".")[2]


def test_every_import_between_rooms_points_up_the_list():
    assert room_breaches(SOURCES, ROOMS) == []


def test_every_module_of_a_divided_package_stands_in_a_room():
    packages = {module.rpartition(".")[0] for module in SOURCES}
    homeless = [m for m in SOURCES if m.startswith(DIVIDED) and m not in packages and floor_of(m, ROOMS) is None]
    assert [module for module in homeless if names_of(module) != "__main__"] == []


def test_no_two_modules_of_dagkit_have_one_name():
    """A name in a traceback or a search leads to one place; a package and a module may share theirs."""
    packages = {module for module in SOURCES if (ROOT / module.replace(".", "/")).is_dir()}
    names = Counter(names_of(m) for m in SOURCES if m.startswith("dagkit.") and m not in packages)
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("dagkit.engine.work.item", "from dagkit.engine.run.loop import Loop", 1),
        ("dagkit.engine.work.item", "from dagkit.engine.files.staging import Part", 1),
        ("dagkit.engine.work.item", "def late():\n    from dagkit.engine.run import loop", 1),
        ("dagkit.engine.run.loop", "from dagkit.engine.work.item import WorkItem", 0),
        ("dagkit.engine.work.item", "from dagkit.engine.work.split import SplitPlanner", 0),
        ("dagkit.engine.work.item", "from dagkit.conf.apply.settings import Settings", 0),
    ],
    ids=["down", "sideways", "down, inside a function", "up", "inside a room", "another package: the layers judge"],
)
def test_a_planted_breach_is_found(module, source, found):
    rooms = (("dagkit.engine.work", "dagkit.engine.files"), ("dagkit.engine.run",), ("dagkit.conf.apply",))
    assert len(room_breaches({module: source}, rooms)) == found
